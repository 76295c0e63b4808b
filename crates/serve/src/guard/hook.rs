//! The way in which a client asks a guard about tools that it has by itself: a socket that only its user can
//! reach. A client runs a command before such a call ([`ask`]), and the guards of that client answer.
//!
//! A guard and the command have the same client above them. So the name of the socket begins with the number
//! of the guard's parent.

use ::guard::{OwnDecision, Refused};
use serde_json::{Value, json};
use std::io::{BufRead as _, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::peer::{Line, Lines};

/// Bytes of a question.
const MAX_QUESTION: usize = 16 << 20;
/// Time for a question and its answer.
const WAIT: Duration = Duration::from_secs(5);
/// The most questions at a time.
const MAX_QUESTIONS: usize = 16;
/// The most processes above the command that may be the client.
const MAX_ABOVE: usize = 8;

/// A message of a client's hook.
#[derive(Debug)]
pub(super) enum Told {
    /// It wants to make this call.
    Call { tool: String, input: Value },
    /// The user asks for this.
    Request(String),
    /// The user has begun a new conversation.
    Fresh,
    /// The user resumes a conversation of which nothing is known here.
    Resumed,
}

/// A message of a client's hook, and where the answer goes.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) told: Told,
    pub(super) answer: oneshot::Sender<OwnDecision>,
}

/// A socket on which a guard is asked. It is removed when this is dropped.
pub(super) struct Hooks {
    path: PathBuf,
    task: AbortHandle,
    pub(super) asked: mpsc::Receiver<Asked>,
}

impl Hooks {
    /// Begins to listen.
    pub(super) fn listen(folder: &Path) -> Result<Hooks, String> {
        let parent = rustix::process::getppid().map_or(0, |p| p.as_raw_nonzero().get());
        let path = folder.join(format!("{parent}-{}.sock", std::process::id()));
        let wrong = |e: std::io::Error| {
            format!("cannot listen at `{}`: {}", path.display(), session::load::reason(&e))
        };
        // Of a process that had this number and did not end well.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(wrong)?;
        let (send, asked) = mpsc::channel(1);
        let room = std::sync::Arc::new(Semaphore::new(MAX_QUESTIONS));
        let task = tokio::spawn(async move {
            loop {
                let Ok(permit) = room.clone().acquire_owned().await else { return };
                let Ok((stream, _)) = listener.accept().await else { continue };
                let send = send.clone();
                tokio::spawn(async move {
                    let _ = timeout(WAIT, answer(stream, send)).await;
                    drop(permit);
                });
            }
        });
        Ok(Hooks { path, task: task.abort_handle(), asked })
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reads a question, and writes the answer.
async fn answer(mut stream: UnixStream, send: mpsc::Sender<Asked>) {
    let (read, mut write) = stream.split();
    let Some(Line::Text(line)) = Lines::new(read, MAX_QUESTION).next().await else { return };
    let Ok(mut question) = serde_json::from_str::<Value>(&line) else { return };
    let told = match (question["tool"].take(), question["request"].take(), question["conversation"].as_str())
    {
        (Value::String(tool), ..) => Told::Call { tool, input: question["input"].take() },
        (_, Value::String(text), _) => Told::Request(text),
        (_, _, Some("fresh")) => Told::Fresh,
        (_, _, Some("resumed")) => Told::Resumed,
        _ => return,
    };
    let (answer, decided) = oneshot::channel();
    if send.send(Asked { told, answer }).await.is_err() {
        return;
    }
    let Ok(decision) = decided.await else { return };
    let text = |refused: &Refused| refused.to_string();
    let object = match &decision {
        OwnDecision::Allowed => json!({"decision": "allowed"}),
        OwnDecision::Asks => json!({"decision": "asks"}),
        OwnDecision::Refused(refused) => json!({"decision": "refused", "why": text(refused)}),
    };
    let _ = write.write_all(format!("{object}\n").as_bytes()).await;
}

/// The folder of the sockets of a user, which nobody else can enter. It is made if it is not there.
///
/// # Errors
/// It can't be made, or is somebody else's, in words for people.
pub fn hook_folder(environment: &runtime::Environment) -> Result<PathBuf, String> {
    let user = rustix::process::getuid().as_raw();
    let path = match environment.get("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(folder).join("entail"),
        None => std::env::temp_dir().join(format!("entail-{user}")),
    };
    let wrong =
        |e: std::io::Error| format!("cannot make `{}`: {}", path.display(), session::load::reason(&e));
    match std::fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(wrong(e)),
        _ => {}
    }
    let is = std::fs::symlink_metadata(&path).map_err(wrong)?;
    if !is.is_dir() || is.uid() != user || is.mode() & 0o077 != 0 {
        return Err(format!("`{}` is not a folder that only this user can enter", path.display()));
    }
    Ok(path)
}

/// The answer of the guards of a client about a call of a tool that it has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    /// All of them allow it.
    Allowed,
    /// One of them wants the user to be asked, and none refuses.
    Asks,
    /// One of them refuses, for this reason.
    Refused(String),
    /// No guard of the client is there, or one does not answer.
    Nobody,
}

/// Asks the guards of the client that has started this process, whatever is between them.
pub fn ask(folder: &Path, tool: &str, input: &Value) -> HookAnswer {
    ask_all(folder, &json!({"tool": tool, "input": input}))
}

/// Tells the guards of the client that has started this process what its user asks for.
pub fn tell_request(folder: &Path, text: &str) {
    // Without a guard there is nobody to be told, and one that does not hear it admits less.
    let _ = ask_all(folder, &json!({"request": text}));
}

/// Tells the guards of the client that has started this process that a new conversation has begun, or that an
/// earlier one goes on. Returns false if one of them does not answer.
pub fn tell_conversation(folder: &Path, is_fresh: bool) -> bool {
    let which = if is_fresh { "fresh" } else { "resumed" };
    ask_all(folder, &json!({"conversation": which})) == HookAnswer::Allowed
}

fn ask_all(folder: &Path, question: &Value) -> HookAnswer {
    let above = above();
    let of_client = |path: &Path| {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        name.ends_with(".sock")
            && name.split('-').next().and_then(|p| p.parse().ok()).is_some_and(|p: i32| above.contains(&p))
    };
    let sockets = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all = HookAnswer::Nobody;
    for socket in sockets.filter(|path| of_client(path)) {
        let one = match ask_one(&socket, question) {
            Ok(answer) => answer,
            // Nobody listens there any more.
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound
                ) =>
            {
                continue;
            }
            Err(_) => return HookAnswer::Nobody,
        };
        all = match (all, one) {
            (_, HookAnswer::Nobody) => return HookAnswer::Nobody,
            (refused @ HookAnswer::Refused(_), _) | (_, refused @ HookAnswer::Refused(_)) => refused,
            (HookAnswer::Asks, _) | (_, HookAnswer::Asks) => HookAnswer::Asks,
            _ => HookAnswer::Allowed,
        };
    }
    all
}

fn ask_one(socket: &Path, question: &Value) -> std::io::Result<HookAnswer> {
    let mut stream = BlockingStream::connect(socket)?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.set_write_timeout(Some(WAIT))?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    let mut line = String::new();
    std::io::BufReader::new(stream.take(1 << 20)).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
    Ok(match answer["decision"].as_str() {
        Some("allowed") => HookAnswer::Allowed,
        Some("asks") => HookAnswer::Asks,
        Some("refused") => HookAnswer::Refused(answer["why"].as_str().unwrap_or_default().into()),
        _ => HookAnswer::Nobody,
    })
}

/// The numbers of the processes above this one, the nearest first.
fn above() -> Vec<i32> {
    let mut out = Vec::new();
    let mut next = rustix::process::getppid().map(|p| p.as_raw_nonzero().get());
    while let Some(pid) = next.filter(|pid| *pid > 1 && out.len() < MAX_ABOVE) {
        out.push(pid);
        next = parent_of(pid);
    }
    out
}

#[cfg(target_os = "linux")]
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses and may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn parent_of(pid: i32) -> Option<i32> {
    let out = std::process::Command::new("ps").args(["-o", "ppid=", "-p", &pid.to_string()]).output().ok()?;
    String::from_utf8(out.stdout).ok()?.trim().parse().ok()
}
