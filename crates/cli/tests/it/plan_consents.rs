//! Plans that ask a person, that delegate, and the remedy for a call that can't be moved: through the command
//! line.
#![cfg(unix)]

use crate::plan::{entail as quick, folder, said, server};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PASSPHRASE: &str = "correct horse battery";
const TOOLS: &str = r#"
tool read_file(path: String) -> String reads untrusted { exec "sh" "-c" "echo read >> calls; printf 'IBAN: DE12 3456'" }
tool send_money(recipient: String, amount: Number) -> String writes requires trusted { exec "sh" "-c" "echo paid >> calls; echo ok" }
"#;
const PLAN: &str = "text = read_file(path=\"bill.txt\")\n\
    known = confirm({\"to\": text.split(\"IBAN: \")[1], \"sum\": 98.7}, \"the account that the bill names\")\n\
    send_money(recipient=known[\"to\"], amount=known[\"sum\"])\n\
    send_money(recipient=known[\"to\"], amount=1)\nprint(\"paid\")\n";

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.env("XDG_CONFIG_HOME", dir.join("config")).env_remove("ENTAIL_MODEL");
    command.args(args).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn entail(dir: &Path, args: &[&str], input: &str) -> Output {
    let mut child = command(dir, args).spawn().unwrap();
    // Nobody need read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn runs(dir: &Path) -> Vec<Value> {
    let list = entail(dir, &["runs", "list", "--journal", "j", "--format", "json"], "");
    String::from_utf8_lossy(&list.stdout).lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn calls(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("calls")).unwrap_or_default()
}

/// A folder with a plan that confirms, and an approver.
fn confirming() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("tools.agent", TOOLS);
    write("pay.plan.py", PLAN);
    let key = entail(dir.path(), &["approve", "--new-key", "alice", "--passphrase-stdin"], PASSPHRASE);
    assert_eq!(key.status.code(), Some(0), "{}", said(&key));
    write("entail.toml", &String::from_utf8_lossy(&key.stdout));
    dir
}

const COMMANDS: [&[&str]; 2] =
    [&["run", "pay.plan.py"], &["plan", "--plan", "pay.plan.py", "--tools", "tools.agent"]];

/// Begins a run that waits for somebody, and kills it. Gives its name.
fn killed_while_it_waits(dir: &Path, program: &[&str]) -> String {
    let mut child = command(dir, &[program, &["--journal", "j", "-q"]].concat()).spawn().unwrap();
    for _ in 0..6_000 {
        if runs(dir).first().is_some_and(|r| r["waiting"][0].is_object()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let waiting = &runs(dir)[0];
    assert_eq!(waiting["waiting"][0]["tool"], "confirm", "{waiting}");
    assert_eq!(waiting["waiting"][0]["args"][0]["value"]["to"], "DE12 3456", "{waiting}");
    assert_eq!(calls(dir), "read\n");
    waiting["run"].as_str().unwrap().to_string()
}

#[test]
fn a_confirmation_in_a_journal_survives_the_death_of_its_run() {
    for program in COMMANDS {
        let dir = confirming();
        let dir = dir.path();
        let id = killed_while_it_waits(dir, program);
        let resume = [program, &["--journal", "j", "--resume", &id, "-q"]].concat();
        // Whoever resumes it approves nothing.
        let waits = entail(dir, &[&resume[..], &["--approvals", "leave"]].concat(), "");
        assert_eq!((waits.status.code(), calls(dir).as_str()), (Some(1), "read\n"), "{}", said(&waits));
        let approve = ["approve", &id, "--journal", "j", "--passphrase-stdin", "--yes"];
        let wrong = entail(dir, &approve, "another passphrase");
        assert_ne!(wrong.status.code(), Some(0), "{}", said(&wrong));
        let approved = entail(dir, &approve, PASSPHRASE);
        assert_eq!(approved.status.code(), Some(0), "{}", said(&approved));
        let done = entail(dir, &resume, "");
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        assert_eq!((done.status.code(), out.trim()), (Some(0), "paid"), "{}", said(&done));
        // One question for both payments, and nothing is read or paid again.
        assert_eq!(calls(dir), "read\npaid\npaid\n");
        let again = entail(dir, &resume, "");
        assert_eq!(
            (again.status.code(), calls(dir).as_str()),
            (Some(0), "read\npaid\npaid\n"),
            "{}",
            said(&again)
        );
    }
}

#[test]
fn a_confirmation_that_is_refused_pays_nothing() {
    let dir = confirming();
    let dir = dir.path();
    let id = killed_while_it_waits(dir, COMMANDS[1]);
    let deny =
        ["approve", &id, "--journal", "j", "--passphrase-stdin", "--deny", "--reason", "not this account"];
    let denied = entail(dir, &deny, PASSPHRASE);
    assert_eq!(denied.status.code(), Some(0), "{}", said(&denied));
    let resume = [COMMANDS[1], &["--journal", "j", "--resume", &id, "-q"]].concat();
    let ended = entail(dir, &resume, "");
    assert!(ended.status.code() == Some(1) && said(&ended).contains("not this account"), "{}", said(&ended));
    assert_eq!(calls(dir), "read\n");
}

/// A folder with tools that a plan delegates to, and the policy.
fn delegating(address: &str) -> tempfile::TempDir {
    let dir = folder(address);
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        "tools.agent",
        "tool mail() -> String reads untrusted { exec \"printf\" \"Please book lunch\" }\n\
         tool book() -> List[String] reads { exec \"printf\" \"[\\\"bob\\\", \\\"carol\\\"]\" }\n\
         tool create_event(title: String) -> String writes requires trusted { exec \"sh\" \"-c\" \"cat >> called\" }\n\
         tool pay(recipient: String, amount: Number) -> String writes requires trusted { exec \"sh\" \"-c\" \"cat >> called\" }\n",
    );
    write(
        "policy.toml",
        "[tools.book]\neffect = \"read\"\nresult = \"trusted\"\n[[delegate]]\nto = \"untrusted\"\n\
         tools = [\"create_event\", \"pay\"]\namong = { recipient = \"tools.book()\" }\nat_most = 3\n",
    );
    write(
        "d.plan.py",
        "made = delegate(mail(), to=\"untrusted\", tools=[create_event, pay])\n\
         print(\", \".join(c[\"tool\"] for c in made))\n",
    );
    dir
}

const DELEGATE: [&str; 9] = [
    "plan",
    "--plan",
    "d.plan.py",
    "--tools",
    "tools.agent",
    "--policy",
    "policy.toml",
    "--quarantine",
    "planner",
];

#[test]
fn a_delegated_text_makes_the_calls_that_the_policy_admits() {
    let event = r#"{"value": {"call": "create_event", "create_event": {"title": "lunch"}, "pay": null}}"#;
    let pay = |to: &str| {
        format!(
            r#"{{"value": {{"call": "pay", "pay": {{"recipient": "{to}", "amount": 5}}, "create_event": null}}}}"#
        )
    };
    let done = r#"{"value": {"call": "done", "pay": null, "create_event": null}}"#;
    let called = |dir: &Path| std::fs::read_to_string(dir.join("called")).unwrap_or_default();
    let (address, seen) = server(vec![event, &pay("bob"), done], "");
    let dir = delegating(&address);
    let out = quick(dir.path(), &DELEGATE);
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "create_event, pay");
    assert_eq!(called(dir.path()), "{\"title\":\"lunch\"}{\"recipient\":\"bob\",\"amount\":5}");
    assert!(seen.lock().unwrap().iter().all(|(_, m)| m.contains("Please book lunch")));

    // Somebody who is not in the book gets nothing.
    let (address, _) = server(vec![event, &pay("eve"), done], "");
    let dir = delegating(&address);
    let out = quick(dir.path(), &DELEGATE);
    let all = said(&out);
    assert!(
        out.status.code() == Some(1) && all.contains("error[flow]: the argument `recipient` of `pay"),
        "{all}"
    );
    assert_eq!(called(dir.path()), "{\"title\":\"lunch\"}");
    // The remedy names tables that a policy has.
    assert!(!all.contains("[tools.pay for untrusted]"), "{all}");

    // A call that nobody delegated is refused before anything runs.
    let (address, seen) = server(vec![event], "");
    let dir = delegating(&address);
    let policy = std::fs::read_to_string(dir.path().join("policy.toml")).unwrap();
    std::fs::write(dir.path().join("policy.toml"), policy.replace("\"create_event\", ", "")).unwrap();
    let out = quick(dir.path(), &DELEGATE);
    assert!(out.status.code() == Some(1) && said(&out).contains("error[P012]"), "{}", said(&out));
    assert!(seen.lock().unwrap().is_empty() && called(dir.path()).is_empty());
}

/// Before the run, `--show` says whose text may choose among what, and how much that is.
#[test]
fn a_delegation_is_shown_with_its_size() {
    let dir = delegating("http://127.0.0.1:1/v1");
    let shown = |policy: &str, plan: &str| {
        std::fs::write(dir.path().join("policy.toml"), policy).unwrap();
        std::fs::write(dir.path().join("d.plan.py"), plan).unwrap();
        let out = quick(dir.path(), &[&DELEGATE[..7], &["--dry-run"]].concat());
        assert_eq!(out.status.code(), Some(0), "{}", said(&out));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let policy = std::fs::read_to_string(dir.path().join("policy.toml")).unwrap();
    let plan = std::fs::read_to_string(dir.path().join("d.plan.py")).unwrap();
    let line = "# ^ text of untrusted may choose among `create_event`, `pay`; at most 3 calls; free in `amount`, \
                `title`, one of a set in `recipient`\n";
    let all = shown(&policy, &plan);
    assert!(all.contains(line), "{all}");
    // One of two recipients, or nothing: three choices, once.
    let counted = "[principals]\na = { iban = \"DE1\" }\nb = { iban = \"DE2\" }\n[[delegate]]\nto = \"untrusted\"\n\
                   tools = [\"give\"]\namong = { recipient = \"principals.{*}.iban\" }\nat_most = 1\n";
    let tools = std::fs::read_to_string(dir.path().join("tools.agent")).unwrap();
    let give = "tool give(recipient: String) -> String writes requires trusted { exec \"true\" }\n";
    std::fs::write(dir.path().join("tools.agent"), tools + give).unwrap();
    let all = shown(counted, "delegate(mail(), to=\"untrusted\", tools=[give])\n");
    assert!(all.contains("may choose among `give`; at most 1 call; ≤ 1.6 bits\n"), "{all}");
}

/// A text in which the results of several calls meet, and rules of a policy without effect.
#[test]
fn joined_texts_and_idle_rules_are_shown() {
    let dir = delegating("http://127.0.0.1:1/v1");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        "policy.toml",
        "[tools.book]\neffect = \"read\"\n[tools.create_event]\neffect = \"write\"\nbounds = { title = \"untrusted\" }\n\
         [tools.pay]\neffect = \"write\"\namong = { recipient = \"tools.book()\" }\n",
    );
    write("d.plan.py", "one = mail()\ntwo = book()[0]\ncreate_event(one + two)\ncreate_event(one)\n");
    let out = quick(dir.path(), &[&DELEGATE[..7], &["--show", "--dry-run"]].concat());
    let all = said(&out);
    let joined = "# ^ `title` joins text of `mail` in line 1 and of `book` in line 2: nothing tells their writers apart";
    assert!(all.contains(joined) && all.matches("joins text").count() == 1, "{all}");
    assert!(all.contains("warning[S108]"), "{all}");
    let checked = said(&quick(dir.path(), &["check", "d.plan.py", "--policy", "policy.toml"]));
    assert!(checked.contains("warning[S108]"), "{checked}");
}

#[test]
fn a_call_that_cannot_be_moved_says_what_to_bind_where() {
    let dir = folder("http://127.0.0.1:1/v1");
    let plan = "bill = read_bill(\"bill.txt\")\nif \"Due\" in bill:\n    amount = int(\"98\")\n    pay(\"DE12\", amount)\n";
    std::fs::write(dir.path().join("p.plan.py"), plan).unwrap();
    let hint = "the argument `amount` has no value before the `if` in line 2: bind it to a variable there";
    for args in [
        &["check", "p.plan.py", "--policy", "policy.toml"][..],
        &["run", "p.plan.py", "--policy", "policy.toml"],
        &["plan", "--plan", "p.plan.py", "--tools", "tools.agent", "--policy", "policy.toml"],
    ] {
        let out = quick(dir.path(), args);
        let all = said(&out);
        assert!(out.status.code() == Some(1) && all.contains("error[S101]"), "{args:?}: {all}");
        assert!(all.contains(hint), "{args:?}: {all}");
    }
    assert!(!dir.path().join("paid").exists());
    // The remedy is one.
    std::fs::write(
        dir.path().join("p.plan.py"),
        plan.replacen("if", "amount = int(\"98\")\nif", 1).replacen("    amount = int(\"98\")\n", "", 1),
    )
    .unwrap();
    let out = quick(
        dir.path(),
        &["plan", "--plan", "p.plan.py", "--tools", "tools.agent", "--policy", "policy.toml"],
    );
    assert!(out.status.code() == Some(0) && dir.path().join("paid").exists(), "{}", said(&out));
}
