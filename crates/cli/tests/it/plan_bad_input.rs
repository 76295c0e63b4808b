//! Plans, requests, planners and signals that go wrong: one clear error each, the documented exit status,
//! nothing is called, and memory stays bounded.
#![cfg(unix)]

use crate::plan::{body, folder, said};
use serde_json::json;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Far more than any of these takes, of a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(120);
/// Memory of a process at most, in MiB. The development build needs some 60 for nothing.
const MAX_MEMORY: u64 = 1_000;

/// Runs a command and writes its peak of memory, in KiB, to a file.
const MEASURE: &str = "import resource, subprocess, sys\n\
    code = subprocess.run(sys.argv[2:]).returncode\n\
    open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\n\
    sys.exit(code if code >= 0 else 128 - code)";

fn clean(command: &mut Command) -> &mut Command {
    for name in ["HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ENTAIL_MODEL"] {
        command.env_remove(name);
    }
    command.env("M_KEY", "sk-test").stdin(Stdio::null())
}

/// Runs the program, and checks its time and memory.
fn entail(dir: &Path, args: &[&str]) -> Output {
    let start = Instant::now();
    let mut python = Command::new("python3");
    python.args(["-c", MEASURE, "peak", env!("CARGO_BIN_EXE_entail")]).args(args).current_dir(dir);
    let out = clean(&mut python).output().unwrap();
    assert!(start.elapsed() < PATIENCE, "{args:?} took {:?}", start.elapsed());
    let peak: u64 = std::fs::read_to_string(dir.join("peak")).unwrap().trim().parse().unwrap();
    // Linux counts in KiB, others in bytes.
    let peak = if cfg!(target_os = "linux") { peak >> 10 } else { peak >> 20 };
    assert!(peak < MAX_MEMORY, "{args:?} took {peak} MiB");
    out
}

/// One error with this code, in a run that ended with this status and called nothing.
#[track_caller]
fn one_error(name: &str, dir: &Path, out: &Output, (status, code): (i32, &str)) {
    let all = said(out);
    assert_eq!(out.status.code(), Some(status), "{name}: {all}");
    let errors: Vec<&str> = all.lines().filter(|l| l.starts_with("error")).collect();
    assert!(errors.len() == 1 && errors[0].starts_with(&format!("error[{code}]: ")), "{name}: {all}");
    assert!(errors[0].len() < 400 && all.len() < 4_000, "{name}: {} bytes", all.len());
    assert!(!all.contains("panicked") && !all.contains("internal error"), "{name}: {all}");
    assert!(!dir.join("paid").exists(), "{name}: something was called");
}

const PAY: &str = "\npay(\"DE12\", 98)\n";

#[test]
fn a_bad_plan_has_one_error_with_its_place_and_calls_nothing() {
    let dir = folder("http://127.0.0.1:1/v1");
    let dir = dir.path();
    let repeated = |text: &str, n: usize| text.repeat(n);
    let then_pay = |text: &str| format!("{text}{PAY}").into_bytes();
    let deep = |open: &str, close: &str| {
        then_pay(&format!("x = {}1{}", repeated(open, 100_000), repeated(close, 100_000)))
    };
    let doubled: String =
        (1..40).map(|i| format!("def f{i}():\n    return f{0}() + f{0}()\n", i - 1)).collect();
    let before_the_run: Vec<(&str, Vec<u8>, &str)> = vec![
        ("no Python", then_pay("x = = 1"), "P000"),
        ("prose", b"Please pay the bill.".to_vec(), "P000"),
        ("10 MB", then_pay(&format!("x = '{}'", repeated("a", 10 << 20))), "D003"),
        ("4 MB", then_pay(&format!("x = '{}'", repeated("a", 4 << 20))), "P000"),
        ("lists 100,000 deep", deep("[", "]"), "P020"),
        ("calls 100,000 deep", deep("f(", ")"), "P020"),
        ("functions that double", then_pay(&format!("def f0():\n    return 1\n{doubled}f39()")), "P020"),
        ("an unknown tool", b"delete_everything('now')\npay('DE12', 98)".to_vec(), "P002"),
        ("a wrong type", b"pay(1, 98)".to_vec(), "P003"),
        ("a missing argument", b"pay('DE12')".to_vec(), "P003"),
        ("binary", (0..=255).cycle().take(10_000).collect(), "D001"),
        ("another encoding", b"x = '\xe9'".to_vec(), "D001"),
        ("UTF-16", "x = 1".encode_utf16().flat_map(u16::to_le_bytes).collect(), "D001"),
        ("NUL", then_pay("x = 1\n\0"), "D001"),
        ("tabs and spaces", then_pay("if True:\n\tx = 1\n        y = 2"), "P000"),
        ("a pattern with look-around", then_pay("import re\nre.search('(?<=a)b', 'ab')"), "P001"),
        ("a large pattern", then_pay("import re\nre.search('((a{100}){100}){100}', 'a')"), "P001"),
        (
            "f-strings 300 deep",
            then_pay(&format!("x = {}1{}", repeated("f'{", 300), repeated("}'", 300))),
            "P020",
        ),
    ];
    for (name, plan, code) in before_the_run {
        std::fs::write(dir.join("p.plan.py"), plan).unwrap();
        let given = ["plan", "--plan", "p.plan.py", "--tools", "tools.agent"];
        for args in [&given[..], &["run", "p.plan.py"], &["check", "p.plan.py"]] {
            let out = entail(dir, args);
            one_error(name, dir, &out, (1, code));
            assert!(said(&out).contains("p.plan.py:"), "{name}: no place: {}", said(&out));
            assert!(out.stdout.is_empty() || args[0] == "check", "{name}: {}", said(&out));
        }
    }
    let in_the_run: Vec<(&str, &str, &str)> = vec![
        ("forever", "n = 0\nwhile True:\n    n += 1", "limit"),
        ("an enormous power", "x = 10**10**10", "fail"),
        ("enormous squares", "x = 3\nfor i in range(60):\n    x = x * x", "prim"),
        ("an enormous text of digits", "x = int('9' * 1000000)", "fail"),
        ("a huge text", "x = 'a' * 10**12", "limit"),
        ("a text that doubles", "x = 'a'\nfor i in range(60):\n    x = x + x", "limit"),
        ("a huge list", "x = [0] * 10**12", "limit"),
        ("a huge range", "x = list(range(10**12))", "limit"),
        ("a loop over a huge range", "for i in range(10**12):\n    pass", "limit"),
        ("a huge width", "x = f\"{1:>1000000000000}\"", "limit"),
        ("a huge precision", "x = f\"{1/3:.1000000000f}\"", "fail"),
        ("a replacement that explodes", "x = 'a' * 100000\nx = x.replace('a', x)", "limit"),
        ("deep JSON", "import json\nx = json.loads('[' * 100000)", "fail"),
        ("a duration beyond all", "from datetime import timedelta\nx = timedelta(days=10**30)", "fail"),
        ("an exception", "x = {}['coffee']", "fail"),
        ("a type", "x = 1 + 'a'", "fail"),
    ];
    for (name, plan, code) in in_the_run {
        std::fs::write(dir.join("p.plan.py"), format!("{plan}{PAY}")).unwrap();
        for args in [&["plan", "--plan", "p.plan.py", "--tools", "tools.agent"][..], &["run", "p.plan.py"]] {
            let out = entail(dir, args);
            one_error(name, dir, &out, (1, code));
            assert!(said(&out).contains("--> p.plan.py:"), "{name}: no place: {}", said(&out));
        }
    }
}

#[test]
fn an_odd_file_is_a_plan() {
    let dir = folder("http://127.0.0.1:1/v1");
    let dir = dir.path();
    for (name, plan) in [
        ("a byte order mark", "\u{feff}print('ok')"),
        ("lines of Windows", "x = 'ok'\r\nif x:\r\n    print(x)\r\n"),
        ("lines of old Macs", "x = 'ok'\rprint(x)\r"),
        ("tabs", "if True:\n\tprint('ok')\n"),
        ("f-strings in f-strings", "x = 'ok'\nprint(f'{f\"{x}\"}')"),
        (
            "a pattern that others take forever for",
            "import re\nprint('ok' if not re.search('(a+)+$', 'a' * 50000 + 'b') else '')",
        ),
        ("parentheses 10,000 deep", &format!("print({}'ok'{})", "(".repeat(10_000), ")".repeat(10_000))),
    ] {
        std::fs::write(dir.join("p.plan.py"), plan).unwrap();
        let out = entail(dir, &["plan", "--plan", "p.plan.py", "--tools", "tools.agent"]);
        let all = said(&out);
        assert!(out.status.code() == Some(0) && all.trim() == "ok", "{name}: {all}");
    }
    for (name, plan) in [("nothing", ""), ("a comment", "# nothing")] {
        std::fs::write(dir.join("p.plan.py"), plan).unwrap();
        let out = entail(dir, &["plan", "--plan", "p.plan.py", "--tools", "tools.agent"]);
        assert_eq!(out.status.code(), Some(0), "{name}: {}", said(&out));
    }
}

/// Texts that are looked through many times take the time of their length.
#[test]
fn results_of_tools_do_not_hang_a_plan() {
    let dir = folder("http://127.0.0.1:1/v1");
    let dir = dir.path();
    let tools = "tool page() -> String reads untrusted { exec \"cat\" \"page\" }\n";
    std::fs::write(dir.join("tools.agent"), tools).unwrap();
    std::fs::write(dir.join("page"), "é ".repeat(150_000)).unwrap();
    for plan in [
        "import re\nprint(len([m.start() for m in re.finditer(r'\\w', page())]))",
        "import re\nprint(len(re.findall(r'(\\w)', page())))",
        "import re\nprint(len(re.sub(r'(\\w)', r'\\1', page())) // 2)",
        "print(len(page().split()))",
        "print(len(set(page().splitlines())) * 150000)",
    ] {
        std::fs::write(dir.join("p.plan.py"), plan).unwrap();
        let out = entail(dir, &["plan", "--plan", "p.plan.py", "--tools", "tools.agent"]);
        assert_eq!(said(&out).trim(), "150000", "{plan}");
    }
}

/// An answer of a server, as it goes over the wire.
enum Reply {
    Says(String),
    Http(&'static str, &'static str),
    /// These bytes, and then the connection is closed.
    Bytes(&'static [u8]),
    /// A head, and then one chunk after the other without an end.
    Endless(&'static str),
    Silent,
}

fn answer(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    let http = |stream: &mut TcpStream, status: &str, body: &str| {
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json");
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    match reply {
        Reply::Says(text) => {
            let message = json!({"role": "assistant", "content": text});
            let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
            http(stream, "200 OK", &json!({"choices": [choice]}).to_string())
        }
        Reply::Http(status, body) => http(stream, status, body),
        Reply::Bytes(bytes) => stream.write_all(bytes),
        Reply::Endless(kind) => {
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
            stream.write_all(head.as_bytes())?;
            let data =
                format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "x".repeat(4096)}}]}));
            loop {
                write!(stream, "{:x}\r\n{data}\r\n", data.len())?;
            }
        }
        Reply::Silent => {
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        }
    }
}

/// A server of the chat protocol that gives the same answer to every request, and the number of requests.
fn planner(reply: Reply) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (asked, reply) = (Arc::new(AtomicUsize::new(0)), Arc::new(reply));
    let count = asked.clone();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, count, reply) = (stream.unwrap(), count.clone(), reply.clone());
            std::thread::spawn(move || {
                if body(&mut stream).is_some() {
                    count.fetch_add(1, Ordering::SeqCst);
                    // A client that hangs up is what some of these are about.
                    let _ = answer(&mut stream, &reply);
                }
            });
        }
    });
    (address, asked)
}

/// The settings of `folder`, with limits of time.
fn hurried(address: &str) -> tempfile::TempDir {
    let dir = folder(address);
    let path = dir.path().join("entail.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    let limits = "retries = 0\nconnect_timeout = 5\nread_timeout = 3\ntimeout = 6\n";
    std::fs::write(&path, settings.replace("retries = 0\n", limits)).unwrap();
    dir
}

const REQUEST: [&str; 8] =
    ["plan", "Pay it", "--tools", "tools.agent", "--planner", "planner", "--quarantine", "reader"];

#[test]
fn a_planner_that_fails_is_one_error() {
    let huge = format!("```python\nx = '{}'\n```", "a".repeat(20 << 20));
    let says = |text: &str| Reply::Says(text.into());
    let cut =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"choices\":";
    let cases: Vec<(&str, Reply, &str, usize)> = vec![
        ("an empty reply", says(""), "model", 1),
        ("blanks", says("  \n "), "model", 1),
        ("an empty block", says("Here:\n```python\n```\n"), "P000", 3),
        ("prose", says("I am sorry, I can't do that."), "P000", 3),
        ("20 MB", Reply::Says(huge), "model", 1),
        (
            "an error of the server",
            Reply::Http("500 Internal Server Error", "{\"error\": {\"message\": \"boom\"}}"),
            "model",
            1,
        ),
        (
            "too many requests",
            Reply::Http("429 Too Many Requests", "{\"error\": {\"message\": \"slow\"}}"),
            "model",
            1,
        ),
        ("a wrong key", Reply::Http("401 Unauthorized", "{\"error\": {\"message\": \"key\"}}"), "model", 1),
        ("a page", Reply::Http("200 OK", "<html>hello</html>"), "model", 1),
        ("JSON of something else", Reply::Http("200 OK", "[]"), "model", 1),
        ("a connection that breaks", Reply::Bytes(cut), "model", 1),
        ("a connection without an answer", Reply::Bytes(b""), "model", 1),
        ("an endless body", Reply::Endless("application/json"), "model", 1),
        ("an endless stream", Reply::Endless("text/event-stream"), "model", 1),
        ("silence", Reply::Silent, "model", 1),
        ("a plan that loops forever", says("```python\nwhile True:\n    pass\n```"), "limit", 1),
    ];
    for (name, reply, code, requests) in cases {
        let (address, asked) = planner(reply);
        let dir = hurried(&address);
        let out = entail(dir.path(), &REQUEST);
        one_error(name, dir.path(), &out, (1, code));
        assert_eq!(asked.load(Ordering::SeqCst), requests, "{name}: {}", said(&out));
        assert!(out.stdout.is_empty(), "{name}: {}", said(&out));
    }
}

#[test]
fn a_plan_is_found_in_whatever_stands_around_it() {
    let block = "```python\npay(\"DE12\", 98)\nprint(\"done\")\n```";
    for (name, reply) in [
        ("prose around it", format!("Sure! Here it is:\n\n{block}\n\nHope it helps. ```not code```")),
        ("a second block, which is an example of its output", format!("{block}\nIt prints:\n```\ndone\n```")),
        ("no language", block.replace("python", "")),
        ("a fence of tildes", block.replace("```", "~~~")),
        ("an item of a list", format!("1. Do this:\n   {}", block.replace('\n', "\n   "))),
        ("lines of Windows", block.replace('\n', "\r\n")),
        ("no end", block.trim_end_matches('`').to_string()),
        ("no fences", block.replace("```python\n", "").replace("```", "")),
    ] {
        let (address, asked) = planner(Reply::Says(reply));
        let dir = hurried(&address);
        let out = entail(dir.path(), &REQUEST);
        let all = said(&out);
        assert!(out.status.code() == Some(0) && all.trim() == "done", "{name}: {all}");
        assert!(dir.path().join("paid").exists() && asked.load(Ordering::SeqCst) == 1, "{name}");
    }
}

#[test]
fn a_request_of_ten_megabytes_is_sent_or_refused() {
    let (address, asked) = planner(Reply::Says("print('done')".into()));
    let dir = hurried(&address);
    // An argument of a command can't be that long, so it comes from `[plan]` of a server or a library: the
    // longest that Linux takes is tried here.
    let request = "Pay it. ".repeat(15_000);
    let args = [&["plan", request.as_str()], &REQUEST[2..]].concat();
    let out = entail(dir.path(), &args);
    assert_eq!((out.status.code(), said(&out).trim()), (Some(0), "done"));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

fn interrupted(dir: &Path, args: &[&str], ready: impl Fn() -> bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(args).current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child: Child = clean(&mut command).spawn().unwrap();
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < PATIENCE, "{args:?} is awaited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let out = child.wait_with_output().unwrap();
    assert!(start.elapsed() < PATIENCE);
    out
}

#[test]
fn ctrl_c_ends_a_command_with_its_status() {
    // While the planner writes.
    let (address, asked) = planner(Reply::Silent);
    let dir = folder(&address);
    let out = interrupted(dir.path(), &REQUEST, || asked.load(Ordering::SeqCst) == 1);
    one_error("planning", dir.path(), &out, (130, "cancelled"));
    // While a quarantined model reads.
    let before = asked.load(Ordering::SeqCst);
    std::fs::write(dir.path().join("p.plan.py"), format!("x = ask('Which?', str){PAY}")).unwrap();
    let given = ["plan", "--plan", "p.plan.py", "--tools", "tools.agent", "--quarantine", "reader"];
    let out = interrupted(dir.path(), &given, || asked.load(Ordering::SeqCst) == before + 1);
    one_error("asking", dir.path(), &out, (130, "cancelled"));
    // In a tool.
    let tools = "tool wait() -> String reads untrusted { exec \"sh\" \"-c\" \"touch begun; sleep 60\" }\n\
                 tool pay(recipient: String, amount: Number) -> String writes requires trusted { exec \"touch\" \"paid\" }\n";
    std::fs::write(dir.path().join("tools.agent"), tools).unwrap();
    std::fs::write(dir.path().join("p.plan.py"), format!("wait(){PAY}")).unwrap();
    let begun = dir.path().join("begun");
    let out = interrupted(dir.path(), &given, || begun.exists());
    one_error("a tool", dir.path(), &out, (130, "cancelled"));
    // In a long computation, after a call that says that it has begun.
    std::fs::remove_file(&begun).unwrap();
    let quick = tools.replace("; sleep 60", "");
    std::fs::write(dir.path().join("tools.agent"), quick).unwrap();
    let long = "wait()\nn = 0\nfor i in range(900):\n    for j in range(900):\n        for k in range(900):\n            n += 1";
    std::fs::write(dir.path().join("p.plan.py"), format!("{long}{PAY}")).unwrap();
    let out = interrupted(dir.path(), &given, || begun.exists());
    one_error("a loop", dir.path(), &out, (130, "cancelled"));
}
