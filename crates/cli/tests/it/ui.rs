//! `entail ui` and runs shown from what was kept, over HTTP and on the command line. What a browser makes of
//! it is tested in `web/test`.
#![cfg(feature = "serve")]

use crate::serving::{JSON, Server, begun};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const PASSPHRASE: &str = "correct horse battery";

/// Pays whom a page names; what a vault holds goes to a model and into the result.
const PROGRAM: &str = r#"tool page(url: String) -> String reads untrusted {}
tool vault(key: String) -> String reads secret {}
tool pay(to: String) -> String writes {}
tool greet(name: String) -> String writes {}
agent clerk { tools: [], prompt: "You extract." }
task recipient(text: String) -> String by agent { prompt "Who is to be paid? {text}" }
pipeline settle(url: String) -> String {
    let text = page(url);
    let to = run recipient with { text: text } by clerk;
    let receipt = run pay with { to: to };
    return receipt;
}
pipeline twice(url: String) -> String {
    let to = page(url);
    try { let receipt = pay(to); } catch refusal e { let reason = e.message; }
    let receipt = pay(to);
    return receipt;
}
pipeline greet_all(count: Int) -> String {
    for n in range(0, count) { let done = greet("bob"); }
    return "greeted";
}
pipeline look(key: String) -> Obj{hello: String, found: String} {
    let hello = greet(key);
    let found = vault(key);
    let said = run recipient with { text: found } by clerk;
    let again = vault(said);
    return { hello: hello, found: again };
}
"#;

const POLICY: &str = "[tools.pay]\neffect = \"write\"\narguments = \"trusted\"\napprove = \"if-refused\"\n";

fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.env("XDG_CONFIG_HOME", dir.join("config")).current_dir(dir);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"] {
        command.env_remove(name);
    }
    command
}

/// Runs the program: exit status, standard output, standard error.
fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut child = command(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Nobody need read it.
    let _ = child.stdin.take().unwrap().write_all(PASSPHRASE.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

fn folder(script: &Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("pay.agent"), PROGRAM).unwrap();
    std::fs::write(at("policy.toml"), POLICY).unwrap();
    std::fs::write(at("s.json"), script.to_string()).unwrap();
    std::fs::write(at("entail.toml"), "").unwrap();
    let key = entail(dir.path(), &["approve", "--new-key", "alice", "--passphrase-stdin"]).1;
    let eve = "[callers.eve]\ntoken_env = \"EVE\"\nclearance = \"public\"\n";
    std::fs::write(at("entail.toml"), format!("policy = \"policy.toml\"\n{key}\n{eve}")).unwrap();
    dir
}

fn paying() -> tempfile::TempDir {
    folder(
        &json!([{"call": "page", "result": "pay bob"}, {"purpose": "recipient", "reply": "bob"}, {"call": "pay", "result": "paid"}]),
    )
}

/// The arguments that run a pipeline into the journal.
fn running(pipeline: &str) -> [&str; 9] {
    ["run", "pay.agent", "--pipeline", pipeline, "--script", "s.json", "--journal", "j", "--run-refused"]
}

fn resume(dir: &Path, pipeline: &str, run: &str) {
    entail(dir, &[&running(pipeline)[..], &["--resume", run]].concat());
}

/// Runs a pipeline into the journal; gives the run.
fn run(dir: &Path, pipeline: &str, input: &str, more: &[&str]) -> String {
    entail(dir, &[&running(pipeline)[..], more, &[input]].concat());
    let list = entail(dir, &["runs", "list", "--journal", "j", "--format", "json"]).1;
    let newest: Value = serde_json::from_str(list.lines().next().unwrap()).unwrap();
    newest["run"].as_str().unwrap().to_string()
}

/// The page, and the token of its link.
fn ui(dir: &Path, journal: &str, more: &[&str]) -> (Server, String) {
    let (child, said) = begun(command(dir).args(["ui", "--journal", journal, "--format", "json"]).args(more));
    let link = said["link"].as_str().unwrap().strip_prefix("http://").unwrap();
    let (address, token) = link.split_once("/#token=").unwrap();
    (Server { child, address: address.to_string() }, token.to_string())
}

/// Sessions of a guard are in the list of runs, and each is shown like one. A journal need not be there.
#[test]
fn sessions_of_a_guard_are_listed_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let decision = |session: &str, time: f64, more: Value| {
        let mut line = json!({"time": time, "session": session, "server": "desk"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string() + "\n"
    };
    let log = [
        decision("a-1", 10.0, json!({"event": "made", "tool": "fetch", "label": "[]"})),
        decision("a-1", 10.5, json!({"event": "raised", "by": "fetch", "label": "[\"U\"]"})),
        decision(
            "a-1",
            11.0,
            json!({"event": "refused", "tool": "send", "message": "no", "remedy": "ask",
            "raisedBy": ["fetch"]}),
        ),
        decision("b-2", 20.0, json!({"event": "asked", "tool": "send"})),
    ];
    std::fs::write(dir.path().join("decisions.jsonl"), log.concat()).unwrap();
    let browser = Browser::with(dir.path(), "j", &["--guard-log", "decisions.jsonl"]);
    let (_, listed) = browser.get("/api/runs");
    let ids: Vec<&str> =
        listed["runs"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["guard-b-2", "guard-a-1"], "{listed}");
    assert_eq!(listed["runs"][1]["error"]["message"], "1 call refused");
    let lines = browser.run("/api/runs/guard-a-1");
    assert_eq!(lines[0]["about"]["run"]["state"], "done");
    let refused = lines.iter().find(|l| l["error"].is_string()).unwrap();
    assert_eq!(refused["error"], "refused: no, since calls of `fetch`; ask");
    assert_eq!(lines.last().unwrap()["label"], json!(["U"]));
    assert_eq!(browser.get("/api/runs/guard-a-1/page").0, 200);
    assert_eq!(browser.get("/api/runs/guard-c").0, 404);
}

/// A browser that has a session.
pub(crate) struct Browser {
    server: Server,
    cookie: String,
    origin: String,
}

impl Browser {
    fn of(dir: &Path) -> Browser {
        Browser::with(dir, "j", &[])
    }

    pub(crate) fn with(dir: &Path, journal: &str, more: &[&str]) -> Browser {
        let (server, token) = ui(dir, journal, more);
        let origin = format!("http://{}", server.address);
        let body = json!({"token": token}).to_string();
        let opened = server.raw("POST", "/api/session", &[JSON, ("origin", &origin)], &body);
        assert_eq!(opened.0, 204, "{opened:?}");
        let cookie = opened.1.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_string();
        Browser { server, cookie, origin }
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, text) = self.server.raw("GET", path, &[("cookie", &self.cookie)], "");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let headers = [JSON, ("cookie", &*self.cookie), ("origin", &*self.origin)];
        let (status, _, text) = self.server.raw("POST", path, &headers, &body.to_string());
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The revision of which a page that has seen another one last is told.
    fn told(&self, path: &str, last: &str) -> Option<String> {
        let stream = self.server.send("GET", path, &[("cookie", &self.cookie), ("last-event-id", last)], "");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.skip_while(|l| !l.is_empty()).find_map(|l| l.strip_prefix("id: ").map(String::from))
    }

    /// A line about a run, and the lines of its trace.
    fn run(&self, path: &str) -> Vec<Value> {
        let (status, _, text) = self.server.raw("GET", path, &[("cookie", &self.cookie)], "");
        assert_eq!(status, 200, "{text}");
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }
}

#[test]
fn only_the_browser_with_the_link_sees_anything() {
    let dir = paying();
    run(dir.path(), "settle", "u", &["--approvals", "leave"]);
    let (server, token) = ui(dir.path(), "j", &[]);
    let origin = format!("http://{}", server.address);
    let page = server.raw("GET", "/", &[], "");
    let policy = "content-security-policy: default-src 'none'; script-src 'self';";
    assert!(
        page.0 == 200 && page.1.contains(policy) && page.1.contains("frame-ancestors 'none'"),
        "{page:?}"
    );
    for path in ["/api/about", "/api/runs", "/api/approvals", "/api/events", "/api/runs/1/page"] {
        let refused = server.raw("GET", path, &[], "");
        assert!(refused.0 == 401 && refused.1.contains("content-security-policy"), "{path}: {refused:?}");
    }
    let body = json!({"token": token}).to_string();
    let open = |headers: &[(&str, &str)], body: &str| server.raw("POST", "/api/session", headers, body).0;
    // Names for this machine that others give it, other pages, forms.
    assert_eq!(open(&[JSON, ("origin", "http://evil.example"), ("host", "evil.example")], &body), 403);
    assert_eq!(open(&[JSON, ("origin", "http://evil.example")], &body), 403);
    assert_eq!(open(&[JSON], &body), 403);
    assert_eq!(open(&[("content-type", "text/plain"), ("origin", &origin)], &body), 422);
    assert_eq!(open(&[JSON, ("origin", &origin)], &json!({"token": "0".repeat(64)}).to_string()), 401);
    assert_eq!(open(&[JSON, ("origin", &origin)], &body), 204);
    assert_eq!(open(&[JSON, ("origin", &origin)], &body), 401);
    assert_eq!(server.raw("GET", "/api/runs", &[("cookie", "entail_ui_1=x")], "").0, 401);
}

#[test]
fn an_approver_answers_once_and_nobody_else_does() {
    let dir = paying();
    let id = run(dir.path(), "settle", "u", &["--approvals", "leave"]);
    let browser = Browser::of(dir.path());
    let (_, inbox) = browser.get("/api/approvals");
    let card = &inbox["approvals"][0];
    assert_eq!((&card["tool"], &card["run"], &card["n"]), (&json!("pay"), &json!(id), &json!(3)), "{inbox}");
    assert_eq!(
        card["args"],
        json!([{"name": "to", "value": "bob", "label": ["U"], "type": "Str", "schema": {"type": "string"}}])
    );
    // The page decides the argument, and the program that there is a call.
    assert_eq!(card["because"]["parts"], json!([{"part": "to", "label": ["U"], "bound": []}]), "{card}");
    assert_eq!((&card["control"], &card["decided"]), (&json!([]), &json!(false)), "{card}");
    assert!(card["why"].to_string().contains("the tool `page` answered"), "{card}");
    let path = format!("/api/approvals/{}", card["request"].as_str().unwrap());
    let answer = |body: Value| {
        let (status, said) = browser.post(&path, &body);
        (status, said["error"]["message"].as_str().unwrap_or_default().to_string())
    };
    assert_eq!(answer(json!({"decision": "approve", "passphrase": "wrong"})).0, 403);
    let other = answer(json!({"decision": "approve", "approver": "mallory", "passphrase": PASSPHRASE}));
    assert!(other.0 == 403 && other.1.contains("no key of `mallory`"), "{other:?}");
    assert_eq!(answer(json!({"decision": "approve"})).0, 422);
    assert_eq!(answer(json!({"decision": "maybe", "passphrase": PASSPHRASE})).0, 422);
    assert_eq!(answer(json!({"decision": "approve", "reason": "why not", "passphrase": PASSPHRASE})).0, 422);
    let none = browser.post("/api/approvals/0000", &json!({"decision": "deny", "passphrase": PASSPHRASE}));
    assert_eq!(none.0, 404);
    // Nothing of it counted.
    assert_eq!(browser.get("/api/approvals").1["approvals"].as_array().unwrap().len(), 1);
    let (status, decided) = browser.post(&path, &json!({"decision": "approve", "passphrase": PASSPHRASE}));
    assert_eq!((status, &decided["by"]), (200, &json!("alice")), "{decided}");
    let late = answer(json!({"decision": "deny", "passphrase": PASSPHRASE}));
    assert!(late.0 == 409 && late.1.contains("answered already"), "{late:?}");
    resume(dir.path(), "settle", &id);
    let lines = browser.run(&format!("/api/runs/{id}"));
    let by = lines.iter().find(|l| l["event"] == "kept" && l["n"] == 3).unwrap();
    assert_eq!(by["by"], json!({"name": "alice", "via": "key"}));
    assert_eq!(lines.last().unwrap()["result"], "paid");
    assert!(entail(dir.path(), &["runs", "check", "--journal", "j"]).1.contains("all intact"));
}

#[test]
fn a_page_that_follows_a_run_gets_what_it_lacks() {
    let dir = paying();
    let id = run(dir.path(), "settle", "u", &["--approvals", "leave"]);
    let browser = Browser::of(dir.path());
    let whole = browser.run(&format!("/api/runs/{id}"));
    let revision = whole[0]["revision"].as_str().unwrap();
    assert_eq!((&whole[0]["keep"], &whole[0]["about"]["run"]["state"]), (&json!(0), &json!("waiting")));
    let same = browser.run(&format!("/api/runs/{id}?have={revision}"));
    assert_eq!((same.len(), same[0]["keep"].as_u64()), (1, Some(whole.len() as u64 - 1)));
    // A page that has seen the present revision is told nothing; another one is told at once.
    let told = |last: &str| browser.told(&format!("/api/runs/{id}/events"), last);
    let now = told("").unwrap();
    assert_eq!((told(&now), told("earlier")), (None, Some(now)));
    entail(dir.path(), &["approve", &id, "--journal", "j", "--passphrase-stdin", "--deny"]);
    resume(dir.path(), "settle", &id);
    let more = browser.run(&format!("/api/runs/{id}?have={revision}"));
    let keep = more[0]["keep"].as_u64().unwrap() as usize;
    assert!(keep > 0 && more[0]["about"]["run"]["state"] == "failed", "{more:?}");
    let whole_now = browser.run(&format!("/api/runs/{id}"));
    assert_eq!([&whole[1..=keep], &more[1..]].concat(), whole_now[1..]);
}

/// The page looks now and then: a question may have been answered and another one asked since it looked last.
#[test]
fn a_question_in_the_place_of_another_is_a_change() {
    let dir = paying();
    let leave = ["--approvals", "leave"];
    let id = run(dir.path(), "twice", "u", &leave);
    let browser = Browser::of(dir.path());
    let before = browser.told("/api/events", "").unwrap();
    assert_eq!(browser.told("/api/events", &before), None);
    entail(dir.path(), &["approve", &id, "--journal", "j", "--passphrase-stdin", "--deny"]);
    entail(dir.path(), &[&running("twice")[..], &leave, &["--resume", &id]].concat());
    let card = browser.get("/api/approvals").1["approvals"].take();
    assert_eq!((card.as_array().unwrap().len(), &card[0]["refusedBefore"]), (1, &json!(2)), "{card}");
    assert!(browser.told("/api/events", &before).is_some_and(|now| now != before));
}

#[test]
fn a_page_gets_the_first_lines_of_a_long_run_first() {
    let dir = folder(&json!([{"call": "greet", "result": "hi", "repeat": true}]));
    let long = run(dir.path(), "greet_all", r#"{"count":5000}"#, &[]);
    let short = run(dir.path(), "greet_all", r#"{"count":10}"#, &[]);
    let browser = Browser::of(dir.path());
    let first = browser.run(&format!("/api/runs/{long}?first=true"));
    assert_eq!((&first[0]["more"], &first[0]["revision"]), (&json!(5000), &json!("")));
    assert_eq!(first[0]["about"]["run"]["state"], "done");
    let whole = browser.run(&format!("/api/runs/{long}"));
    assert!(first.len() > 1000 && first.len() < 2000, "{} lines", first.len());
    assert_eq!(first[1..], whole[1..first.len()]);
    assert_eq!(whole.last().unwrap()["result"], "greeted");
    // It is known by now, and the other one is not long.
    for id in [&long, &short] {
        let shown = browser.run(&format!("/api/runs/{id}?first=true"));
        assert_eq!((&shown[0]["more"], &shown.last().unwrap()["event"]), (&Value::Null, &json!("end")));
    }
}

#[test]
fn runs_are_listed_forked_and_exported() {
    let dir = paying();
    let id = run(dir.path(), "settle", "u", &["--approvals", "refuse"]);
    let browser = Browser::of(dir.path());
    let list = |query: &str| {
        browser.get(&format!("/api/runs{query}")).1["runs"].as_array().map_or(usize::MAX, Vec::len)
    };
    let states =
        ["", "?state=failed", "?state=done", "?state=waiting", "?error=flow", "?error=x", "?program=settle"];
    assert_eq!(states.map(list), [1, 1, 0, 0, 0, 0, 1]);
    for wrong in ["?state=odd", "?after=1", "?after=x.y"] {
        assert_eq!(browser.get(&format!("/api/runs{wrong}")).0, 422, "{wrong}");
    }
    assert_eq!(browser.get("/api/runs/none").0, 404);
    let fork = |body: Value| browser.post(&format!("/api/runs/{id}/fork"), &body);
    let (status, made) = fork(json!({"step": 2, "response": {"reply": "carol"}}));
    assert_eq!(status, 200, "{made}");
    let forked = browser.run(&format!("/api/runs/{}", made["run"].as_str().unwrap()));
    let asked = forked.iter().find(|l| l["kind"] == "approve").unwrap();
    assert_eq!(asked["args"], json!({"to": "carol"}));
    for wrong in [
        json!({"step": 9, "response": {"reply": "x"}}),
        json!({"step": 1, "response": {"reply": "x"}}),
        json!({}),
        json!(1),
    ] {
        assert_eq!(fork(wrong.clone()).0, 422, "{wrong}");
    }
    let page = browser.server.raw("GET", &format!("/api/runs/{id}/page"), &[("cookie", &browser.cookie)], "");
    assert!(
        page.1.contains("attachment; filename=\"run-") && page.2.contains("<!doctype html>"),
        "{}",
        page.1
    );
    // The program is in a page that holds everything, with the parts of its bound.
    let about = page.2.lines().find(|l| l.contains(r#""costPath":["#)).unwrap();
    let about = &about[about.find('{').unwrap()..];
    let about: Value = serde_json::from_str(about).unwrap();
    assert!(about["program"]["svg"].as_str().unwrap().contains(">pay<"), "{about}");
    let most = &about["program"]["costPath"][0]["most"];
    assert_eq!(most, &json!({"modelCalls": 0, "toolCalls": 1, "usd": 0.0}));
    let of_file = entail(dir.path(), &["trace", &id, "--journal", "j", "--html", "run.html"]);
    let of_file = (of_file.0, std::fs::read_to_string(dir.path().join("run.html")).unwrap());
    assert!(of_file.0 == 0 && of_file.1.contains(r#""costPath":[{"#));
    let unknown = browser.get(&format!("/api/runs/{id}/page?for=nobody"));
    assert!(unknown.0 == 422 && unknown.1.to_string().contains("`nobody` is no"), "{unknown:?}");
}

/// Base64 of a text at each of the three positions that it may have in what is encoded, without the ends that
/// depend on what is beside it.
fn encoded(text: &str) -> Vec<String> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let forms = (0..3).map(|before| {
        let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(text.bytes()).collect();
        let bits = bytes.iter().flat_map(|b| (0..8).rev().map(move |i| b >> i & 1)).collect::<Vec<u8>>();
        let digits =
            bits.chunks_exact(6).map(|six| DIGITS[six.iter().fold(0, |n, b| n * 2 + usize::from(*b))]);
        let digits: String = digits.map(char::from).collect();
        digits[(before * 8).div_ceil(6) + 1..digits.len() - 1].to_string()
    });
    forms.collect()
}

#[test]
fn a_file_has_nothing_that_its_principal_may_not_see() {
    // Two runs that differ in secrets alone, also in their lengths and numbers of characters.
    let secrets = [["PLANTED-one", "PLANTED-two"], ["PLANTED-another-one", "PLANTED-2"]];
    let files = secrets.map(|[first, second]| {
        let script = json!([
            {"call": "greet", "result": "hello"}, {"call": "vault", "result": first},
            {"purpose": "recipient", "reply": second}, {"call": "vault", "result": format!("{first} {second}")},
        ]);
        let dir = folder(&script);
        let id = run(dir.path(), "look", "door", &[]);
        let whole = entail(dir.path(), &["trace", &id, "--journal", "j", "--json"]).1;
        assert!(whole.contains(first) && whole.contains(second), "{whole}");
        let all = ["trace", &id, "--journal", "j", "--for", "eve"];
        let lines = entail(dir.path(), &[&all[..], &["--json"]].concat());
        let html = entail(dir.path(), &[&all[..], &["--html", "run.html"]].concat());
        assert_eq!((lines.0, html.0), (0, 0), "{lines:?} {html:?}");
        let file = std::fs::read_to_string(dir.path().join("run.html")).unwrap();
        // The program has no label, so it is not there.
        assert!(!file.contains("\"svg\":") && !file.contains("\"costPath\":"));
        for secret in [first, second, "PLANTED"] {
            let escaped: String = secret.chars().map(|c| format!("\\u{:04x}", c as u32)).collect();
            for form in [secret.to_string(), escaped].into_iter().chain(encoded(secret)) {
                assert!(!file.contains(&form) && !lines.1.contains(&form), "{form}");
            }
        }
        // What is public is there.
        assert!(lines.1.contains("\"tool\":\"greet\"") && lines.1.contains("hello"), "{lines:?}");
        assert!(!lines.1.contains("recipient") && lines.1.contains("\"code\":\"withheld\""), "{lines:?}");
        (lines.1, file.replace(&id, "RUN"))
    });
    assert_eq!(files[0].0, files[1].0);
    assert_eq!(files[0].1, files[1].1);
}

#[test]
fn wrong_readers_are_told_what_there_is() {
    let dir = paying();
    let id = run(dir.path(), "settle", "u", &["--approvals", "refuse"]);
    let nobody = entail(dir.path(), &["trace", &id, "--journal", "j", "--for", "nobody", "--json"]);
    assert!(nobody.0 == 2 && nobody.2.contains("`nobody` is no `[callers.NAME]`"), "{nobody:?}");
    let program = entail(dir.path(), &["trace", "pay.agent", "--for", "eve"]);
    assert!(program.0 == 2 && program.2.contains("`--for` shows runs of a journal"), "{program:?}");
    let missing = entail(dir.path(), &["ui", "--journal", "nowhere"]);
    assert!(missing.0 == 2 && missing.2.contains("not found"), "{missing:?}");
}

/// Two stores, one of which holds what anybody wrote.
const STORES: &str = r#"tool page(url: Str) -> Str @ untrusted
tool pay(account: Str) -> Str write
mem (
  let _ = remember a 1 in
  let b = recall a in
  let _ = remember a 2 in
  let text = tool[page] {url: "u"} in
  let _ = remember said text in
  let again = recall said in
  tool[pay] {account: "x"}
) {a: Num = 0, said: Str @ untrusted}
"#;

/// A run tells the importance of its requests, whoever answers them: at once, or beside a journal; while it
/// goes on, and when it is shown from what was kept.
#[test]
fn importance_is_part_of_a_run_and_the_same_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let script = json!([{"call": "page", "result": "text"}, {"call": "pay", "result": "paid"}]);
    std::fs::write(dir.path().join("stores.lam"), STORES).unwrap();
    std::fs::write(dir.path().join("s.json"), script.to_string()).unwrap();
    let run = |more: &[&str]| {
        let (status, _, said) =
            entail(dir.path(), &[&["run", "stores.lam", "--script", "s.json"], more].concat());
        assert_eq!(status, 0, "{said}");
    };
    run(&["--trace", "t.jsonl"]);
    run(&["--journal", "j", "--trace", "kept.jsonl"]);
    let list = entail(dir.path(), &["runs", "list", "--journal", "j", "--format", "json"]).1;
    let kept: Value = serde_json::from_str(list.lines().next().unwrap()).unwrap();
    let kept = kept["run"].as_str().unwrap();
    let played = entail(dir.path(), &["trace", kept, "--journal", "j", "--json"]).1;
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    for trace in [read("t.jsonl"), read("kept.jsonl"), played] {
        let lines = trace.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
        let answers: Vec<Value> =
            lines.filter(|l| l["event"] == "response").map(|mut l| l["importance"].take()).collect();
        let minor = json!("minor");
        let want = [&minor, &minor, &minor, &Value::Null, &Value::Null, &Value::Null, &Value::Null];
        assert_eq!(answers.iter().collect::<Vec<_>>(), want, "{trace}");
    }
    let folded = "1 to 3: 3 minor requests (remember memory.a, recall memory.a)";
    for trace in [&["t.jsonl"][..], &[kept, "--journal", "j"]] {
        let shown = entail(dir.path(), &[&["trace"], trace].concat()).1;
        assert!(shown.contains(folded) && !shown.contains("   2  recall"), "{shown}");
        let all = entail(dir.path(), &[&["trace"], trace, &["--all"]].concat()).1;
        assert!(!all.contains("minor") && all.contains("   2  recall memory.a"), "{all}");
    }
}

/// One process serves a program, and shows its runs to the browser with the link alone.
#[test]
fn a_server_shows_its_runs_to_the_browser_with_the_link() {
    let calls = ["page", "pay", "greet", "vault"].map(|tool| json!({"call": tool, "result": "done"}));
    let dir = folder(&json!(calls));
    let serve = ["serve", "pay.agent", "--format", "json", "--listen", "127.0.0.1:0", "--script", "s.json"];
    let page = ["--run-refused", "--journal", "j", "--ui", "0"];
    let (child, said) =
        begun(command(dir.path()).env("EVE", "planted-5f3a9c01d2e84b76").args(serve).args(page));
    let address = |key: &str, end: &str| {
        let url = said[key].as_str().unwrap().strip_prefix("http://").unwrap();
        url.split(end).next().unwrap().to_string()
    };
    let served = Server { child, address: address("listening", "/") };
    let token = said["ui"].as_str().unwrap().split_once("#token=").unwrap().1;
    let shown = address("ui", "/");
    assert_ne!(shown, served.address);
    let (status, ran) =
        served.post_as("planted-5f3a9c01d2e84b76", "/v1/pipelines/greet_all/runs", &json!({"count": 0}));
    assert_eq!((status, &ran["result"]), (200, &json!("greeted")), "{ran}");
    // The page has a door of its own: a caller's token does not open it, and its link is none of a caller.
    let to_page = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let heads: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut stream = std::net::TcpStream::connect(&shown).unwrap();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {shown}\r\nconnection: close\r\n");
        write!(stream, "{head}{heads}content-length: {length}\r\n\r\n{body}").unwrap();
        crate::serving::read(stream)
    };
    let refused = to_page("GET", "/api/runs", &[("authorization", "Bearer planted-5f3a9c01d2e84b76")], "");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert_eq!(served.get_as(token, "/v1/runs").0, 401);
    let origin = format!("http://{shown}");
    let opened =
        to_page("POST", "/api/session", &[JSON, ("origin", &origin)], &json!({"token": token}).to_string());
    let cookie = opened.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap();
    let runs = to_page("GET", "/api/runs", &[("cookie", cookie.split(';').next().unwrap())], "");
    assert!(runs.contains("pay.agent greet_all") && runs.contains(ran["run"].as_str().unwrap()), "{runs}");
    drop(served);
    let without = entail(dir.path(), &["serve", "pay.agent", "--ui", "0"]);
    assert!(without.0 == 2 && without.2.contains("--journal"), "{without:?}");
}
