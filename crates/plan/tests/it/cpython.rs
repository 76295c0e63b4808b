//! The same plans in CPython.

use crate::run::Ended;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Python {
    /// Starts the interpreter that the other tests need, too.
    pub fn start() -> Python {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cpython.py");
        let mut child = Command::new("python3")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed by these tests");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Python { child, input, output }
    }

    /// Runs a plan. Nothing if a number was rounded, a word boundary was looked for where plans deviate, or a
    /// library is missing: such plans can't be compared.
    pub fn run(&mut self, text: &str) -> Option<Ended> {
        writeln!(self.input, "{}", Value::from(text)).expect("the interpreter runs");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the interpreter answers");
        let json: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}\n{text}"));
        let deviates = json["rounded"] == true || json["deviates"] == true;
        // What CPython has no memory for is beyond the limit of a run.
        if deviates || json["error"] == "ModuleNotFoundError" || json["error"] == "MemoryError" {
            return None;
        }
        let result = match json.get("error").and_then(Value::as_str) {
            Some(class) => Err(class.to_string()),
            None => Ok(json["result"].clone()),
        };
        Some(Ended { result, trace: json["trace"].as_array().cloned().unwrap_or_default() })
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // The script ends with its input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Equality of JSON in which numbers are compared by value.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x.to_string() == y.to_string()
                || match (x.as_f64(), y.as_f64()) {
                    (Some(x), Some(y)) => (x - y).abs() <= 1e-9 * x.abs().max(1.0),
                    _ => false,
                }
        }
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|((n, x), (m, y))| n == m && same(x, y))
        }
        _ => a == b,
    }
}

pub fn equal(a: &Ended, b: &Ended) -> bool {
    let results = match (&a.result, &b.result) {
        (Ok(x), Ok(y)) => same(x, y),
        (Err(x), Err(y)) => x == y,
        _ => false,
    };
    results && a.trace.len() == b.trace.len() && a.trace.iter().zip(&b.trace).all(|(x, y)| same(x, y))
}
