//! Approval of a call with other arguments than the program gave: at the command line, over HTTP and in the
//! page of `entail ui`.
#![cfg(all(target_os = "linux", feature = "serve"))]

use crate::serving::{JSON, Server, begun};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const PASSPHRASE: &str = "correct horse battery";

/// An amount of at most 50 is paid to whom a model names, and the model is told.
const PROGRAM: &str = r#"tool pay(to: String, amount: Number, note: Option[String]) -> String writes {
    exec "sh" "-c" "echo \"$0 $1\" >> ledger; test -e go || sleep 60; printf 'paid %s to %s' \"$1\" \"$0\"" "{to}" "{amount}"
}
agent clerk { tools: [pay], prompt: "You pay." }
task settle(bill: String) -> String by agent { prompt "Pay this: {bill}" }
pipeline main(bill: String) -> String {
    let said = run settle with { bill: bill } by clerk;
    return said;
}
"#;

const POLICY: &str = "[tools.pay]\neffect = \"write\"\narguments = \"trusted\"\ncontrol = \"trusted\"\napprove = true\n\
                      allow = '\\a. a.amount.value <= 50 || \"more than 50\"'\n";

/// Runs a command: exit status, standard output, standard error.
fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut child = command(dir, args).spawn().unwrap();
    // Nobody need read it.
    let _ = child.stdin.take().unwrap().write_all(PASSPHRASE.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.env("XDG_CONFIG_HOME", dir.join("config")).current_dir(dir).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A folder with the program and two approvers.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("pay.agent", PROGRAM);
    write("policy.toml", POLICY);
    write("go", "");
    write("entail.toml", "");
    let key = entail(dir.path(), &["approve", "--new-key", "alice", "--passphrase-stdin"]).1;
    let boss = "[callers.boss]\ntoken_sha256 = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"\n\
                roles = [\"approve\"]\nclearance = \"any\"\n";
    write("entail.toml", &format!("policy = \"policy.toml\"\n{key}\n{boss}"));
    dir
}

const RUN: [&str; 7] = ["run", "pay.agent", "--script", "s.json", "--journal", "j", "--run-refused"];

/// A script whose model pays.
fn scripted(dir: &Path) {
    let script = json!([{"tool": "pay", "args": {"to": "bob", "amount": 10}}, "It is done."]);
    std::fs::write(dir.join("s.json"), script.to_string()).unwrap();
}

/// A run that waits.
fn waiting(dir: &Path) -> String {
    scripted(dir);
    entail(dir, &[&RUN[..], &["--approvals", "leave", "ten to bob"]].concat());
    let list = entail(dir, &["runs", "list", "--journal", "j", "--format", "json"]).1;
    let run: Value = serde_json::from_str(list.lines().next().unwrap()).unwrap();
    assert_eq!(run["status"], "waiting", "{list}");
    run["run"].as_str().unwrap().to_string()
}

fn resume(dir: &Path, run: &str) -> (i32, String, String) {
    // What the model has said is in the journal.
    std::fs::write(dir.join("s.json"), json!(["It is done."]).to_string()).unwrap();
    entail(dir, &[&RUN[..], &["--resume", run, "--approvals", "leave"]].concat())
}

fn edit(dir: &Path, run: &str, edit: &str) -> (i32, String, String) {
    entail(dir, &["approve", run, "--journal", "j", "--passphrase-stdin", "--edit", edit])
}

fn ledger(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("ledger")).unwrap_or_default()
}

/// The lines of the trace of a run.
fn trace(dir: &Path, run: &str) -> Vec<Value> {
    let (status, text, said) = entail(dir, &["trace", run, "--journal", "j", "--json"]);
    assert_eq!(status, 0, "{said}");
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The last message to a model.
fn told(lines: &[Value]) -> String {
    let mut asked = lines.iter().filter(|l| l["kind"] == "model");
    asked.next_back().unwrap()["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

#[test]
fn a_call_is_made_with_what_the_approver_wrote() {
    let dir = folder();
    let run = waiting(dir.path());
    // What the parameters don't take is refused before anybody signs.
    for (wrong, why) in [
        (r#"{"amount": "much"}"#, "the argument `amount`: $: expected a number, found a string"),
        (r#"{"whom": "eve"}"#, "`pay` has no parameter `whom`"),
        (r#"{"amount": null}"#, "the argument `amount`"),
        ("[40]", "not a JSON object"),
        ("{", "the edit is not JSON"),
    ] {
        let refused = edit(dir.path(), &run, wrong);
        assert!(refused.0 == 2 && refused.2.contains(why), "{wrong}: {refused:?}");
    }
    let approved = edit(dir.path(), &run, r#"{"amount": 40, "to": "bob", "note": "rent"}"#);
    assert!(approved.0 == 0 && approved.1.contains("approved with other arguments"), "{approved:?}");
    // One answer counts.
    assert_eq!(edit(dir.path(), &run, r#"{"amount": 1}"#).0, 2);
    let done = resume(dir.path(), &run);
    assert!(done.0 == 0 && done.1.contains("It is done."), "{done:?}");
    assert_eq!(ledger(dir.path()), "bob 40\n");

    let lines = trace(dir.path(), &run);
    let find = |event: &str, kind: &str| {
        lines.iter().find(|l| l["event"] == event && (kind.is_empty() || l["kind"] == kind)).unwrap()
    };
    let asked = find("request", "approve");
    assert_eq!(asked["args"], json!({"to": "bob", "amount": 10, "note": null}));
    let answer = lines.iter().find(|l| l["event"] == "response" && l["n"] == asked["n"]).unwrap();
    // What is as it was is no edit.
    assert_eq!(answer["edit"], json!({"amount": 40, "note": "rent"}));
    let endorsed = find("endorsement", "");
    assert_eq!(endorsed["by"], json!({"name": "alice", "via": "key"}));
    assert_eq!(endorsed["args"], json!([{"name": "to", "label": ["U"]}]));
    assert_eq!(find("request", "tool")["args"], json!({"to": "bob", "amount": 40, "note": "rent"}));
    let tells = r#"The call of `pay` was approved with changed arguments: {\"amount\":40,\"note\":\"rent\"}"#;
    assert!(told(&lines).contains(tells), "{}", told(&lines));

    // It is in the journal, with whoever did it; what checks the journal is content; a replay is the same.
    let shown = entail(dir.path(), &["runs", "show", &run, "--journal", "j"]).1;
    assert!(
        shown.contains(r#""edit":{"amount":40,"note":"rent"}"#) && shown.contains(r#""name":"alice""#),
        "{shown}"
    );
    let check = entail(dir.path(), &["runs", "check", "--journal", "j"]);
    assert!(check.0 == 0 && check.1.contains("all intact"), "{check:?}");
    let again = entail(dir.path(), &[&RUN[..], &["--resume", &run]].concat());
    assert_eq!((again.0, again.1), (0, done.1));
    assert_eq!(ledger(dir.path()), "bob 40\n");
}

#[test]
fn the_policy_decides_about_an_edit_as_about_the_call() {
    let dir = folder();
    let run = waiting(dir.path());
    assert_eq!(edit(dir.path(), &run, r#"{"amount": 80}"#).0, 0);
    let done = resume(dir.path(), &run);
    assert_eq!((done.0, ledger(dir.path())), (0, String::new()), "{done:?}");
    let lines = trace(dir.path(), &run);
    assert!(!lines.iter().any(|l| l["kind"] == "tool"));
    // The model learns both: that the call was changed, and that it was refused.
    let told = lines.iter().rfind(|l| l["kind"] == "model").unwrap()["messages"].to_string();
    assert!(told.contains("more than 50") && told.contains(r#"{\"amount\":80}"#), "{told}");
}

/// The process is killed while the tool is at work with the arguments of the approver.
#[test]
fn an_edit_outlives_the_process() {
    let dir = folder();
    let run = waiting(dir.path());
    assert_eq!(edit(dir.path(), &run, r#"{"amount": 40}"#).0, 0);
    std::fs::remove_file(dir.path().join("go")).unwrap();
    std::fs::write(dir.path().join("s.json"), json!(["It is done."]).to_string()).unwrap();
    let mut killed = command(dir.path(), &[&RUN[..], &["--resume", &run]].concat()).spawn().unwrap();
    for _ in 0..6000 {
        if ledger(dir.path()) == "bob 40\n" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    std::fs::write(dir.path().join("go"), "").unwrap();
    let retried = entail(dir.path(), &[&RUN[..], &["--resume", &run, "--unfinished", "retry"]].concat());
    assert!(retried.0 == 0 && retried.1.contains("It is done."), "{retried:?}");
    assert_eq!(ledger(dir.path()), "bob 40\nbob 40\n");
    let lines = trace(dir.path(), &run);
    assert_eq!(lines.iter().find(|l| l["kind"] == "tool").unwrap()["args"]["amount"], 40);

    // Whoever can write the journal changes what was approved: the run asks again instead of paying.
    let next = waiting(dir.path());
    assert_eq!(edit(dir.path(), &next, r#"{"amount": 30}"#).0, 0);
    let db = rusqlite::Connection::open(dir.path().join("j/journal.db")).unwrap();
    db.execute("UPDATE answers SET reason = replace(reason, '30', '50') WHERE reason LIKE '%30%'", [])
        .unwrap();
    let still = resume(dir.path(), &next);
    assert!(still.2.contains("the run waits for approval"), "{still:?}");
    assert_eq!(ledger(dir.path()), "bob 40\nbob 40\n");
    let check = entail(dir.path(), &["runs", "check", "--journal", "j"]);
    assert!(check.0 == 1 && check.1.contains("the signature is not that of `alice`"), "{check:?}");
}

/// The token of the caller `boss`.
const BOSS: &str = "test";

#[test]
fn a_caller_approves_with_other_arguments() {
    for (input, amount, is_paid) in [("untrusted", 40, true), ("untrusted", 80, false), ("secret", 40, false)]
    {
        let dir = folder();
        let settings = std::fs::read_to_string(dir.path().join("entail.toml")).unwrap();
        std::fs::write(dir.path().join("entail.toml"), format!("{settings}input = \"{input}\"\n")).unwrap();
        scripted(dir.path());
        let server = Server::start(dir.path(), &["pay.agent", "--journal", "j", "--script", "s.json"], None);
        let body = json!({"bill": "ten to bob"}).to_string();
        let path = "/v1/pipelines/main/runs";
        let (status, head, text) = server.raw("POST", path, &[JSON, ("prefer", "respond-async")], &body);
        assert_eq!(status, 202, "{text}");
        let run = head
            .lines()
            .find_map(|l| l.to_lowercase().strip_prefix("location: ").map(str::to_string))
            .unwrap();
        let waits = server.until(&run, |r| r["status"] == "waiting");
        let question = format!("/v1/approvals/{}", waits["waiting"][0]["request"].as_str().unwrap());
        let decide = |body: Value| server.post_as(BOSS, &question, &body);
        for wrong in [
            json!({"decision": "approve", "edit": {"amount": "much"}}),
            json!({"decision": "approve", "edit": {"whom": 1}}),
            json!({"decision": "approve", "edit": 40}),
            json!({"decision": "deny", "edit": {"amount": 40}}),
        ] {
            assert_eq!(decide(wrong.clone()).0, 422, "{wrong}");
        }
        let (status, said) = decide(json!({"decision": "approve", "edit": {"amount": amount}}));
        assert_eq!((status, &said["verdict"]), (200, &json!("edited")), "{said}");
        assert_eq!(decide(json!({"decision": "approve", "edit": {"amount": 1}})).0, 409);
        // Whoever began the run may not see what is secret.
        server.until(&run, |r| r["status"] == "done" || r["status"] == "withheld");
        let paid = if is_paid { format!("bob {amount}\n") } else { String::new() };
        assert_eq!(ledger(dir.path()), paid, "{input} {amount}");
        drop(server);
        let lines = trace(dir.path(), run.rsplit('/').next().unwrap());
        let by = lines.iter().find(|l| l["event"] == "endorsement").map(|l| &l["by"]);
        assert_eq!(by, Some(&json!({"name": "boss", "via": "caller"})));
    }
}

#[test]
fn the_inbox_says_what_may_be_edited_and_takes_it() {
    let dir = folder();
    let run = waiting(dir.path());
    let (child, said) =
        begun(command(dir.path(), &["ui", "--journal", "j", "--format", "json"]).stdin(Stdio::null()));
    let link = said["link"].as_str().unwrap().strip_prefix("http://").unwrap();
    let (address, token) = link.split_once("/#token=").unwrap();
    let server = Server { child, address: address.to_string() };
    let origin = format!("http://{address}");
    let opened = server.raw(
        "POST",
        "/api/session",
        &[JSON, ("origin", &origin)],
        &json!({"token": token}).to_string(),
    );
    let cookie = opened.1.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let inbox = server.raw("GET", "/api/approvals", &[("cookie", cookie)], "").2;
    let inbox: Value = serde_json::from_str(&inbox).unwrap();
    let card = &inbox["approvals"][0];
    assert_eq!(
        (&card["args"][1]["type"], &card["args"][1]["schema"]["type"]),
        (&json!("Num"), &json!("number")),
        "{card}"
    );
    let path = format!("/api/approvals/{}", card["request"].as_str().unwrap());
    let answer = |body: Value| {
        let (status, _, text) =
            server.raw("POST", &path, &[JSON, ("cookie", cookie), ("origin", &origin)], &body.to_string());
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let with = |edit: Value| json!({"decision": "approve", "edit": edit, "passphrase": PASSPHRASE});
    let wrong = answer(with(json!({"amount": "much"})));
    assert!(wrong.0 == 422 && wrong.1.to_string().contains("expected a number"), "{wrong:?}");
    assert_eq!(answer(json!({"decision": "deny", "edit": {}, "passphrase": PASSPHRASE})).0, 422);
    assert_eq!(answer(json!({"decision": "approve", "edit": {"amount": 40}, "passphrase": "x"})).0, 403);
    let done = answer(with(json!({"amount": 40})));
    assert_eq!((done.0, &done.1["verdict"], &done.1["by"]), (200, &json!("edited"), &json!("alice")));
    assert_eq!(resume(dir.path(), &run).0, 0);
    assert_eq!(ledger(dir.path()), "bob 40\n");
}
