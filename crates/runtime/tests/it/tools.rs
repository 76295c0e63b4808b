//! Tools that are processes and HTTP requests.
#![cfg(unix)]

use crate::support::program::{call, caught, decl, exec, machine};
use crate::support::{Act, Server};
use core_ir::{Data, Name, Num, ToolDecl, Type};
use machine::ErrorCode;
use runtime::{CancellationToken, Environment, Handlers, Limits, Models, Scripted, ToolLimits, Tools};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

fn tools() -> Tools {
    Tools::new(&Environment::new([("PLANTED_KEY", KEY)]))
}

/// Calls a tool within a run.
async fn run(tools: Tools, tool: ToolDecl, args: Vec<(Name, Data)>) -> Result<Data, String> {
    let handlers =
        Handlers { tools, ..Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap()))) };
    let m = machine(|b| call(b, tool, args));
    let mut events = Vec::new();
    let limits = Limits::default();
    let report =
        runtime::run(m, &handlers, &limits, &CancellationToken::new(), &mut |e| events.push(e)).await;
    assert!(!format!("{report:?} {events:?}").contains("planted"), "{report:?} {events:?}");
    match report.result {
        Ok(value) => Ok(value.data().unwrap()),
        Err(f) => {
            // A tool that is late is told from one that fails by the code, whatever carries it out.
            let late = [" took longer than ", "no answer within ", "no result within "];
            let is_late = late.iter().any(|what| f.message.contains(what));
            match f.code {
                ErrorCode::ToolTimeout => assert!(is_late, "{f:?}"),
                ErrorCode::Tool | ErrorCode::Type | ErrorCode::Configuration => assert!(!is_late, "{f:?}"),
                _ => panic!("{f:?}"),
            }
            Err(f.message)
        }
    }
}

async fn sh(script: &str, result: Type) -> Result<Data, String> {
    run(tools(), decl("t", &[], result, Some(exec(&["sh", "-c", script]))), vec![]).await
}

fn arg(name: &str, data: impl Into<Data>) -> (Name, Data) {
    (name.into(), data.into())
}

fn alive(pid: &str) -> bool {
    // A zombie that nobody has collected yet does not run any more.
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|s| !s.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn arguments_arrive_as_json_and_in_holes() {
    let t = decl(
        "t",
        &[("a", Type::Str), ("n", Type::Num)],
        Type::list(Type::Dyn),
        Some(exec(&[
            "sh",
            "-c",
            r#"read -r in; printf '[%s, "%s", "%s"]' "$in" "$1" "$2""#,
            "sh",
            "{a}",
            "{{n}}={n}",
        ])),
    );
    let args = vec![arg("a", "$(rm x); *"), arg("n", Num::from(2))];
    let got = run(tools(), t, args.clone()).await.unwrap();
    assert_eq!(got, Data::list([Data::record(args), Data::str("$(rm x); *"), Data::str("{n}=2")]));
}

/// They are in the standard input as a whole when the process begins, so one whose caller is killed then has
/// them all.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn arguments_are_there_before_the_process_is() {
    let script = "stat -L -c '\"%F %s\"' /proc/self/fd/0";
    let t = decl("t", &[("a", Type::Str)], Type::Str, Some(exec(&["sh", "-c", script])));
    let got = run(tools(), t, vec![arg("a", Data::str("x".repeat(1 << 20)))]).await.unwrap();
    assert_eq!(got, Data::str(format!("regular file {}", (1 << 20) + r#"{"a":""}"#.len())));
}

#[tokio::test]
async fn a_text_result_need_not_be_json() {
    assert_eq!(sh("echo hello", Type::Str).await, Ok(Data::str("hello")));
    assert_eq!(sh("echo '\"hello\"'", Type::Str).await, Ok(Data::str("hello")));
    assert_eq!(sh("echo 42", Type::Str).await, Ok(Data::str("42")));
    assert_eq!(sh("true", Type::option(Type::Num)).await, Ok(Data::Null));
}

#[tokio::test]
async fn failures_say_what_happened() {
    let cases = [
        (sh("echo '{{oops' ; echo why >&2", Type::Num).await, "its output is not JSON"),
        (sh("echo '{{oops' ; echo why >&2", Type::Num).await, "its output: `why`"),
        (sh("true", Type::Num).await, "it wrote nothing where JSON of type Num is expected"),
        (
            sh("echo no such luck >&2; exit 3", Type::Num).await,
            "`sh` failed with exit status: 3; its output: `no such luck`",
        ),
        (sh("kill -9 $$", Type::Num).await, "`sh` failed with signal: 9"),
        (sh("printf '\\377'", Type::Str).await, "not valid UTF-8"),
        (sh("echo '\"x\"'", Type::Num).await, "expected a number, found a string"),
    ];
    for (got, want) in cases {
        let e = got.unwrap_err();
        assert!(e.contains(want), "{want}\n{e}");
    }
    let missing = decl("t", &[], Type::Num, Some(exec(&["/no/such/program"])));
    let e = run(tools(), missing, vec![]).await.unwrap_err();
    assert!(e.starts_with("the tool `t` can't be called: program `/no/such/program` not found"), "{e}");
}

/// Mistakes in handlers that only a call finds out about end the run.
#[tokio::test]
async fn missing_handler_is_uncatchable() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_string()
    };
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    let orphan = file("orphan", "#!/no/such/interpreter -x\n", 0o755);
    let module = file("module.py", "def other(): pass\n", 0o644);
    let broken = file("broken.py", "import no_such_module_anywhere\n", 0o644);
    let python = |function: String| Data::record([("python".into(), Data::str(function))]);
    let gone = dir.path().join("gone").display().to_string();
    let files = Data::record([("builtin".into(), Data::str("file.list")), ("root".into(), Data::str(gone))]);
    let cases = [
        (exec(&["/no/such/program"]), "program `/no/such/program` not found"),
        (exec(&["no-such-program-anywhere"]), "program `no-such-program-anywhere` not found"),
        (exec(&[&plain]), "is not executable"),
        (exec(&[&orphan]), "needs the interpreter `/no/such/interpreter`, which is not there"),
        (python(format!("{module}:act")), "the module has no `act`"),
        (python(format!("{broken}:act")), "has no module `no_such_module_anywhere`"),
        (files, "is not a directory"),
    ];
    for (handler, want) in cases {
        let t = decl("t", &[("a", Type::Str)], Type::Dyn, Some(handler));
        let tools = tools().allowing_python();
        let handlers =
            Handlers { tools, ..Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap()))) };
        let m = machine(|b| {
            let call = call(b, t, vec![arg("a", "x")]);
            caught(b, call)
        });
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let report = runtime::run(m, &handlers, &limits, &cancel, &mut |_| {}).await;
        let e = report.result.unwrap_err();
        assert!(e.code == ErrorCode::Configuration && e.message.contains(want), "{want}\n{e:?}");
        assert!(e.message.starts_with("the tool `t` can't be called: "), "{e:?}");
    }
}

/// A failed call is an error of the tool, which the program may handle.
#[tokio::test]
async fn failures_of_calls_can_be_caught() {
    let t = decl("t", &[], Type::Dyn, Some(exec(&["sh", "-c", "exit 3"])));
    let handlers =
        Handlers { tools: tools(), ..Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap()))) };
    let m = machine(|b| {
        let call = call(b, t, vec![]);
        caught(b, call)
    });
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(m, &handlers, &limits, &cancel, &mut |_| {}).await;
    assert!(report.result.is_ok(), "{report:?}");
}

#[tokio::test]
async fn secrets_are_neither_inherited_nor_told() {
    // The variable is really set, for this one process.
    let script = "env | grep -c ^PLANTED_KEY=; true";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tools::child_sees_no_key", "--ignored", "--nocapture"])
        .env("PLANTED_KEY", KEY)
        .env("SCRIPT", script)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A tool that got hold of it all the same.
    let e = sh(&format!("echo key {KEY} >&2; exit 1"), Type::Num).await;
    assert!(e.unwrap_err().contains("its output: `key [redacted]`"));
}

/// Run by the test above, in a process that has the variable.
#[tokio::test]
#[ignore]
async fn child_sees_no_key() {
    let Ok(script) = std::env::var("SCRIPT") else { return };
    assert!(std::env::var("PLANTED_KEY").is_ok());
    let t = decl("t", &[], Type::Num, Some(exec(&["sh", "-c", &script])));
    let got = run(Tools::new(&Environment::default()), t, vec![]).await;
    assert_eq!(got, Ok(Data::Num(Num::ZERO)));
    // Unless its handler asks for it.
    let handler = record(&[
        ("exec", Data::list(["sh", "-c", &script].map(Data::str))),
        ("env", Data::list([Data::str("PLANTED_KEY")])),
    ]);
    let got =
        run(Tools::new(&Environment::default()), decl("t", &[], Type::Num, Some(handler)), vec![]).await;
    assert_eq!(got, Ok(Data::Num(Num::ONE)));
}

#[tokio::test]
async fn a_flood_is_cut() {
    let limits = ToolLimits { max_output: 10_000, ..ToolLimits::default() };
    let t = |script: &str| decl("t", &[], Type::Str, Some(exec(&["sh", "-c", script])));
    let e = run(tools().with_limits(limits.clone()), t("yes"), vec![]).await.unwrap_err();
    assert!(e.contains("was killed: it wrote more than 10000 bytes"), "{e}");
    // Of the errors the end is kept.
    let e =
        run(tools().with_limits(limits), t("yes | head -c 1000000 >&2; echo the end >&2; exit 1"), vec![])
            .await
            .unwrap_err();
    assert!(e.len() < 1000 && e.contains("failed with exit status: 1"), "{e}");
}

/// A script that starts a grandchild, writes its number to a file, and runs the rest.
fn with_grandchild(dir: &Path, rest: &str) -> String {
    format!("sleep 1000 & echo $! > {}/pid.tmp; mv {0}/pid.tmp {0}/pid; {rest}", dir.display())
}

#[tokio::test]
async fn time_kills_the_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let script = with_grandchild(dir.path(), "wait");
    let t = decl("t", &[], Type::Str, Some(exec(&["sh", "-c", &script])));
    let limits = ToolLimits { timeout: Duration::from_millis(500), ..ToolLimits::default() };
    let e = run(tools().with_limits(limits), t, vec![]).await.unwrap_err();
    assert!(e.contains("was killed: it took longer than 0.5 s"), "{e}");
    let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
    until(|| !alive(&pid)).await;
}

#[tokio::test]
async fn descendants_of_tool_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let script = with_grandchild(dir.path(), "echo done");
    // The grandchild holds the output open; that does not keep the call waiting.
    assert_eq!(sh(&script, Type::Str).await, Ok(Data::str("done")));
    let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
    until(|| !alive(&pid)).await;
}

#[tokio::test]
async fn canceling_the_run_kills_the_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let script = with_grandchild(dir.path(), "wait");
    let t = decl("t", &[], Type::Str, Some(exec(&["sh", "-c", &script])));
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let running = tokio::spawn(async move {
        let handlers = Handlers {
            tools: tools(),
            ..Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap())))
        };
        let m = machine(|b| call(b, t, vec![]));
        runtime::run(m, &handlers, &Limits::default(), &token, &mut |_| {}).await
    });
    until(|| dir.path().join("pid").exists()).await;
    let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
    assert!(alive(&pid));
    cancel.cancel();
    assert_eq!(running.await.unwrap().result.unwrap_err().code, ErrorCode::Cancelled);
    until(|| !alive(&pid)).await;
}

#[tokio::test]
async fn a_program_that_reads_nothing_gets_no_signal_it_minds() {
    let t = decl("t", &[("a", Type::Str)], Type::Str, Some(exec(&["sh", "-c", "exec <&-; echo fine"])));
    let got = run(tools(), t, vec![arg("a", "x".repeat(1 << 20).as_str())]).await;
    assert_eq!(got, Ok(Data::str("fine")));
}

fn record(fields: &[(&str, Data)]) -> Data {
    Data::record(fields.iter().map(|(n, d)| (Name::from(*n), d.clone())))
}

#[tokio::test]
async fn handlers_that_cannot_be_used_are_named() {
    let t = |handler: Option<Data>| decl("t", &[("a", Type::Str)], Type::Str, handler);
    let http = |url: &str| record(&[("http", record(&[("url", Data::str(url))]))]);
    let server =
        if cfg!(feature = "mcp") { "no MCP server `s` is declared" } else { "this build has no MCP client" };
    let cases = [
        (t(None), "no handler for tool `t` (help: add a body"),
        (t(Some(Data::Null)), "it is null, not a record"),
        (t(Some(record(&[]))), "exactly one of"),
        (t(Some(record(&[("mcp", Data::str("s"))]))), server),
        (t(Some(record(&[("shell", Data::str("s"))]))), "`shell` is not one of"),
        (t(Some(exec(&[]))), "`exec` names no program"),
        (t(Some(exec(&["{a}"]))), "the program of `exec` depends on an argument"),
        (t(Some(exec(&["p", "{b}"]))), "`{b}` is not a parameter of the tool; expected `a`"),
        (t(Some(record(&[("builtin", Data::str("rm"))]))), "`rm` is not a built-in tool"),
        (
            t(Some(record(&[("exec", Data::list([Data::str("p")])), ("timeout", Data::str("1"))]))),
            "`timeout` is a string",
        ),
        (t(Some(http("http://{a}/x"))), "the host of its URL depends on an argument"),
        (t(Some(http("http://h{a}.example/x"))), "the host of its URL depends on an argument"),
        (t(Some(http("file:///etc/{a}"))), "has the scheme `file`"),
        (t(Some(http("http://u:p@h/{a}"))), "contains a user or a password"),
    ];
    for (tool, want) in cases {
        let e = tools().check(&tool).unwrap_err().one_line();
        assert!(e.contains(want), "{want}\n{e}");
        assert_eq!(run(tools(), tool, vec![arg("a", "x")]).await, Err(e));
    }
    // Whoever gives functions has given one under another name.
    let act: runtime::CustomTool = Arc::new(|_| Box::pin(async { Ok(Data::Null) }));
    let near = tools().with_custom("tt", act).check(&t(None)).unwrap_err().one_line();
    assert!(near.contains("register a function of this name; there is one for `tt`"), "{near}");
    // What is proposed can be written so.
    let odd = tools().check(&decl("code: \"Split\"", &[], Type::Str, None)).unwrap_err().one_line();
    assert!(odd.contains(r#"add `"code: \"Split\"" = { exec"#), "{odd}");
    let t = decl("t", &[("a", Type::Str)], Type::Str, None);
    let configured = tools().with_handler("t", record(&[("builtin", Data::str("text.upper"))]));
    assert_eq!(run(configured, t, vec![arg("a", "x")]).await, Ok(Data::str("X")));
}

fn web(server: &Server, method: &str, path: &str) -> Data {
    let url = format!("{}{path}", server.url.strip_suffix("/v1").unwrap());
    record(&[("http", record(&[("method", Data::str(method)), ("url", Data::str(url))]))])
}

#[tokio::test]
async fn requests_carry_arguments_in_their_proper_places() {
    let server = Server::start([Act::Say("hi".into())]).await;
    let params = [("p", Type::Str), ("model", Type::Str), ("messages", Type::list(Type::Dyn))];
    // The server speaks the protocol of models; a tool that posts to it must fit.
    let t = decl("t", &params, Type::Dyn, Some(web(&server, "post", "/v1/chat/{p}")));
    let message = record(&[("role", Data::str("user")), ("content", Data::str("x"))]);
    let args = |p: &str| vec![arg("p", p), arg("model", "m"), arg("messages", Data::list([message.clone()]))];
    let got = run(tools(), t.clone(), args("completions")).await.unwrap();
    assert_eq!(got.field("object"), Some(&Data::str("chat.completion")));
    let seen = server.seen();
    assert_eq!(seen[0].body["messages"][0]["content"], "x");
    let e = run(tools(), t.clone(), args("../a b?c#d")).await.unwrap_err();
    assert!(e.contains("/v1/chat/..%2Fa%20b%3Fc%23d`: HTTP 404"), "{e}");
    let e = run(tools(), t, args("..")).await.unwrap_err();
    assert!(e.contains("can't be `.` or `..`"), "{e}");

    let t = decl(
        "t",
        &[("q", Type::Str), ("n", Type::option(Type::Num))],
        Type::Dyn,
        Some(web(&server, "GET", "/find")),
    );
    let e = run(tools(), t, vec![arg("q", "a&b"), arg("n", Data::Null)]).await.unwrap_err();
    assert!(e.contains("`GET http://") && e.contains("/find`: HTTP 404") && !e.contains("a&b"), "{e}");
    assert_eq!(server.seen().last().unwrap().path, "/find");
}

#[tokio::test]
async fn a_request_carries_the_key_that_the_settings_name() {
    let server = Server::start([Act::Say("hi".into())]).await;
    let with = |more: &[(&str, &str)]| {
        let url = format!("{}/find", server.url.strip_suffix("/v1").unwrap());
        let fields = [more, &[("url", &*url)]].concat();
        let fields: Vec<(&str, Data)> = fields.iter().map(|(n, v)| (*n, Data::str(*v))).collect();
        record(&[("http", record(&fields))])
    };
    let t = || decl("t", &[], Type::Dyn, None);
    let set = |more: &[(&str, &str)]| tools().with_handler("t", with(more));
    let key = ("key_env", "PLANTED_KEY");
    // The server does not know the path; what it was sent is there all the same.
    let _ = run(set(&[key]), t(), vec![]).await;
    assert_eq!(server.seen()[0].authorization, Some(format!("Bearer {KEY}")));
    let _ = run(set(&[key, ("key_header", "X-Api-Key")]), t(), vec![]).await;
    assert_eq!(server.seen()[1].authorization, None);
    for (more, want) in [
        (vec![("key_env", "OTHER_KEY")], "`OTHER_KEY` is not set (help: set it"),
        (vec![("key_env", "PLANTED")], "`PLANTED` has no name of a secret"),
        (vec![key, ("key_header", "a b")], "`a b` is not a header"),
        (vec![("key_header", "x")], "`key_header` has no `key_env`"),
    ] {
        let e = set(&more).check(&t()).unwrap_err().one_line();
        assert!(e.contains(want), "{e}");
    }
    // A program that somebody else wrote would send it to its own server.
    let own = decl("t", &[], Type::Dyn, Some(with(&[key])));
    let e = run(tools(), own, vec![]).await.unwrap_err();
    assert!(e.contains("a program does not choose where keys go"), "{e}");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn requests_have_limits() {
    let post = |server: &Server| {
        let params = [("model", Type::Str), ("messages", Type::list(Type::Dyn))];
        decl("t", &params, Type::Num, Some(web(server, "POST", "/v1/chat/completions")))
    };
    let message = record(&[("role", Data::str("user")), ("content", Data::str("x"))]);
    let args = || vec![arg("model", "m"), arg("messages", Data::list([message.clone()]))];
    let limits =
        ToolLimits { timeout: Duration::from_millis(150), max_output: 1 << 20, ..ToolLimits::default() };
    let cases = [
        (Act::Endless, "the answer is larger than 1048576 bytes"),
        (Act::Hang, "no answer within 0.15 s"),
        (Act::HangInBody, "no answer within 0.15 s"),
        (Act::Truncate, "broke"),
        (Act::Close, "the connection broke"),
        (Act::Raw(500, "text/plain", None, format!("oops {KEY}")), "HTTP 500: `oops [redacted]`"),
        (
            Act::Raw(301, "text/plain", Some(("location", "http://127.0.0.1:9/".into())), "".into()),
            "HTTP 301",
        ),
        (Act::Raw(200, "text/html", None, "<html>".into()), "its output is not JSON"),
        (Act::Raw(200, "application/json", None, "\"x\"".into()), "expected a number, found a string"),
    ];
    for (act, want) in cases {
        let server = Server::start([act.clone()]).await;
        let e = run(tools().with_limits(limits.clone()), post(&server), args()).await.unwrap_err();
        assert!(e.contains(want), "{act:?}\n{e}");
        server.until_busy(0).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_wants_too_much_memory_does_not_get_it() {
    // Waits until the limit must be there, then asks for 200 MiB.
    let script =
        "import sys, time\nsys.stdin.read()\ntime.sleep(0.2)\nx = bytearray(200 << 20)\nprint(len(x))";
    let with = |mib: i64| {
        let handler = record(&[
            ("exec", Data::list(["python3", "-c", script].map(Data::str))),
            ("memory", Data::Num(Num::from(mib))),
        ]);
        run(Tools::new(&Environment::default()), decl("t", &[], Type::Num, Some(handler)), vec![])
    };
    assert_eq!(with(400).await, Ok(Data::Num(Num::from(200 << 20))));
    let refused = with(100).await.unwrap_err();
    assert!(refused.contains("MemoryError"), "{refused}");
    for wrong in [0, -1] {
        let refused = with(wrong).await.unwrap_err();
        assert!(refused.contains("`memory` is not a positive whole number of MiB"), "{refused}");
    }
}
