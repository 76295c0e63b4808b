//! A server of the command line, and programs for it.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub const TOKEN: &str = "planted-token-0123";

/// The token of a caller that approves.
pub const APPROVER: &str = "planted-approver-0123";

/// The caller that approves, in `entail.toml`: known by the hash of [`APPROVER`].
pub const CALLERS: &str = r#"
[callers.boss]
token_sha256 = "6d766fcaef73c1ca82bd115450ccbda36f160af6cc7b7ba61b63f724fdc4591b"
roles = ["approve"]
clearance = "any"
"#;

/// A model greets.
const PROGRAM: &str = r#"
agent a { tools: [], prompt: "answer" }

task greeting(name: String) -> String by agent { prompt "greet {name}" }

pipeline greet(name: String) -> String {
    let words = run greeting with { name: name } by a;
    return words;
}
"#;

const PAY: &str = r#"tool pay(to: Str) -> Str write approve by {exec: ["sh", "-c", "echo paid >> ledger; echo paid"]}
\x. tool[pay] x
"#;

const SLOW: &str = r#"tool nap() -> Str reads by {exec: ["sh", "-c", "echo $$ > pid; exec sleep 60"]}
\x. tool[nap] {}
"#;

pub struct Server {
    pub child: Child,
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a command that serves; gives what it says of itself, as JSON in a line.
pub fn begun(command: &mut Command) -> (Child, Value) {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let line = bounded("the server begins", move || {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        line
    });
    let said: Value = serde_json::from_str(&line).unwrap_or_else(|e| {
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        panic!("{e}: {line:?} {err}")
    });
    (child, said)
}

impl Server {
    pub fn start(dir: &Path, args: &[&str], token: Option<&str>) -> Server {
        Server::with(dir, args, &token.map(|t| ("ENTAIL_SERVE_TOKEN", t)).into_iter().collect::<Vec<_>>())
    }

    /// With these variables.
    pub fn with(dir: &Path, args: &[&str], environment: &[(&str, &str)]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
        for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"]
        {
            command.env_remove(name);
        }
        command.env_remove("OTEL_EXPORTER_OTLP_ENDPOINT").envs(environment.iter().copied());
        command.args(["serve", "--format", "json", "--listen", "127.0.0.1:0"]).args(args);
        let (child, said) = begun(command.current_dir(dir));
        let address = said["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_string();
        Server { child, address }
    }

    /// Asks it to end, as a supervisor does; gives its exit status and what it said on standard error.
    pub fn end(mut self) -> (Option<i32>, String) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(told.success());
        let mut stderr = self.child.stderr.take().unwrap();
        let said = bounded("the server ends", move || {
            let mut said = String::new();
            stderr.read_to_string(&mut said).unwrap();
            said
        });
        (self.child.wait().unwrap().code(), said)
    }

    /// Waits until a line on standard error contains these words; gives the line.
    pub fn line_with(&mut self, words: &'static str) -> String {
        let mut stderr = self.child.stderr.take().unwrap();
        let (line, stderr) = bounded(words, move || {
            let (mut line, mut byte) = (Vec::new(), [0]);
            // Without a buffer, which would take what comes after the line.
            while stderr.read(&mut byte).unwrap() > 0 {
                match byte[0] {
                    b'\n' if String::from_utf8_lossy(&line).contains(words) => break,
                    b'\n' => line.clear(),
                    byte => line.push(byte),
                }
            }
            (String::from_utf8_lossy(&line).into_owned(), stderr)
        });
        self.child.stderr = Some(stderr);
        line
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(n, _)| *n == "host") {
            head += &format!("host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    /// Status, head and body of the answer.
    pub fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String, String) {
        let text = read(self.send(method, path, headers, body));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_string(), body.to_string())
    }

    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, text) = self.raw("POST", path, &[JSON], &body.to_string());
        (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// As the caller of a token.
    pub fn post_as(&self, token: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        let headers = [JSON, ("authorization", &*bearer)];
        let (status, _, text) = self.raw("POST", path, &headers, &body.to_string());
        (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// As the caller of a token.
    pub fn get_as(&self, token: &str, path: &str) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        let (status, _, text) = self.raw("GET", path, &[("authorization", &*bearer)], "");
        (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// Answers a question, as the caller that approves.
    pub fn decide(&self, question: &str, said: &Value) -> (u16, Value) {
        self.post_as(APPROVER, question, said)
    }

    /// Returns the questions that wait for the caller that approves.
    pub fn questions(&self) -> Value {
        self.get_as(APPROVER, "/v1/approvals").1
    }

    pub fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, text) = self.raw("GET", path, &[], "");
        (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// Asks for something until it is as wanted.
    pub fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..POLLS {
            last = self.get(path).1;
            if wanted(&last) {
                return last;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("`{path}` stays {last}")
    }
}

/// Number of polls before a test gives up: about a minute, longer than any case takes.
pub const POLLS: u32 = 3000;

/// Does something that may never end, if what is tested is broken: then the test fails instead.
pub fn bounded<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(act()));
    wait.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|e| panic!("{what}: {e}"))
}

/// Everything that is answered. A stream that is kept alive and never ends would pass every timeout of a
/// single read.
pub fn read(mut stream: TcpStream) -> String {
    bounded("an answer ends", move || {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    })
}

pub const JSON: (&str, &str) = ("content-type", "application/json");

pub fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("greet.agent"), PROGRAM).unwrap();
    std::fs::write(dir.path().join("pay.lam"), PAY).unwrap();
    std::fs::write(dir.path().join("slow.lam"), SLOW).unwrap();
    std::fs::write(dir.path().join("entail.toml"), CALLERS).unwrap();
    std::fs::write(dir.path().join("s.json"), r#"[{"repeat": true, "reply": "Hello, Ada"}]"#).unwrap();
    dir
}

/// Returns true if the process that the slow tool is is there, be it as a zombie.
pub fn sleeps(dir: &Path) -> bool {
    let pid = std::fs::read_to_string(dir.join("pid")).unwrap_or_default();
    !pid.trim().is_empty() && Path::new("/proc").join(pid.trim()).exists()
}

pub fn until(mut what: impl FnMut() -> bool) {
    for _ in 0..POLLS {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it does not come to that");
}
