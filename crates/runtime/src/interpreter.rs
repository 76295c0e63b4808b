//! The interpreter that is extracted from the proofs, as a process.
//!
//! Entry point: [`Interpreter::find`]. It is a program of its own (`scripts/interpreter` builds it), which
//! shares no code with the machine.
//!
//! Invariant: it gets the case and nothing else: no environment, no files, no network of ours.
//! Invariant: however long it takes, and however much it writes, asking it ends in bounded time and memory.

use serde_json::Value as Json;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Name of the program.
pub const INTERPRETER: &str = "entail-interpreter";

/// The version of what is said to it.
const PROTOCOL: u64 = 1;

/// The most bytes of an answer.
const MAX_ANSWER: u64 = 256 << 20;

/// Time that it has to tell its version.
const GREETING: Duration = Duration::from_secs(10);

/// An interpreter that is there.
#[derive(Clone, Debug)]
pub struct Interpreter {
    program: PathBuf,
    /// Which interpreter it is: a hash of its text.
    identity: String,
}

/// Reason why an interpreter gives no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterpreterError {
    /// There is no program of this name.
    Absent(PathBuf),
    /// It can't be started, or is another program.
    Unusable(PathBuf, String),
    /// It took longer than this.
    Late(Duration),
    /// Its answer is longer than is read.
    TooLong,
    /// It ended without an answer.
    Ended(String),
}

impl fmt::Display for InterpreterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterpreterError::Absent(path) => write!(f, "there is no interpreter `{}`", path.display()),
            InterpreterError::Unusable(path, why) => {
                write!(f, "`{}` can't be used as the interpreter: {why}", path.display())
            }
            InterpreterError::Late(limit) => {
                write!(f, "the interpreter took longer than {} s", limit.as_secs())
            }
            InterpreterError::TooLong => {
                write!(f, "the interpreter's answer is longer than {} MiB", MAX_ANSWER >> 20)
            }
            InterpreterError::Ended(why) => write!(f, "the interpreter ended without an answer: {why}"),
        }
    }
}

impl std::error::Error for InterpreterError {}

impl Interpreter {
    /// The program that is named, or else the one beside a file.
    ///
    /// # Errors
    /// It is absent, or can't be used.
    pub fn find(named: Option<&Path>, beside: &Path) -> Result<Interpreter, InterpreterError> {
        let program = match named {
            Some(path) => path.to_path_buf(),
            None => beside.with_file_name(format!("{INTERPRETER}{}", std::env::consts::EXE_SUFFIX)),
        };
        if !program.is_file() {
            return Err(InterpreterError::Absent(program));
        }
        let unusable = |why: &str| InterpreterError::Unusable(program.clone(), why.to_string());
        let said = match ask(&program, "--version", "", GREETING) {
            Err(InterpreterError::Unusable(_, why) | InterpreterError::Ended(why)) => {
                return Err(unusable(&why));
            }
            said => said?,
        };
        let said: Json = serde_json::from_str(said.trim()).map_err(|_| unusable("it tells no version"))?;
        match (said["protocol"].as_u64(), said["interpreter"].as_str()) {
            (Some(PROTOCOL), Some(identity)) => Ok(Interpreter { identity: identity.to_string(), program }),
            _ => Err(unusable("it is of another version; build it anew with `scripts/interpreter`")),
        }
    }

    /// Which interpreter it is: a hash of its text.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Runs a case.
    ///
    /// # Errors
    /// It gives no answer in this time.
    pub fn run(&self, case: &Json, limit: Duration) -> Result<Json, InterpreterError> {
        let answer = ask(&self.program, "--lines", &format!("{case}\n"), limit)?;
        super::journal::parse(answer.trim_end())
            .map_err(|_| InterpreterError::Ended("what it wrote is not an answer".into()))
    }
}

/// Starts a program, hands it a text, and reads what it writes until it ends.
fn ask(program: &Path, argument: &str, text: &str, limit: Duration) -> Result<String, InterpreterError> {
    let mut child = Command::new(program)
        .arg(argument)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| InterpreterError::Unusable(program.to_path_buf(), e.to_string()))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let text = text.to_string();
    // Whoever writes and reads at once waits for nobody: a pipe holds less than a case.
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A program that has ended reads no more; what it wrote tells.
            let _ = stdin.write_all(text.as_bytes());
        }
    });
    let (done, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = String::new();
        let read = stdout.map_or(Ok(0), |out| out.take(MAX_ANSWER + 1).read_to_string(&mut said));
        // Nobody waits any more if it took too long.
        let _ = done.send(read.map(|_| said));
    });
    let said = answer.recv_timeout(limit);
    let ended = end(&mut child);
    match said {
        Err(_) => Err(InterpreterError::Late(limit)),
        Ok(Ok(said)) if said.len() as u64 > MAX_ANSWER => Err(InterpreterError::TooLong),
        Ok(Ok(said)) if said.trim().is_empty() => Err(InterpreterError::Ended(ended)),
        Ok(Ok(said)) => Ok(said),
        Ok(Err(e)) if e.kind() == ErrorKind::InvalidData => {
            Err(InterpreterError::Ended("what it wrote is no text".into()))
        }
        Ok(Err(e)) => Err(InterpreterError::Ended(e.to_string())),
    }
}

/// Ends a program that has written its answer, or took too long; tells how it ended.
fn end(child: &mut Child) -> String {
    // It closes its output when it ends, so there is nothing to wait for.
    for _ in 0..20 {
        match child.try_wait() {
            Ok(Some(status)) => return status.to_string(),
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => break,
        }
    }
    let _ = child.kill();
    child.wait().map_or_else(|e| e.to_string(), |status| status.to_string())
}
