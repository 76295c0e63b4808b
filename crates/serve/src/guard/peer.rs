//! A server of a guard: a process, or an address over streamable HTTP. Both take lines and give lines.

use super::http;
use super::outlet::Outlet;
use session::server_list::Launch;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Time for a server to exit by itself when its standard input is closed.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Event of a server.
#[derive(Debug)]
pub(super) enum Event {
    /// It says a line.
    Line(String),
    /// It is gone, for this reason.
    Gone(String),
}

/// Where events of servers go, each with the number of its server.
pub(super) type Events = mpsc::Sender<(usize, Event)>;

/// A server, with what waits to be written to it.
pub(super) struct Peer {
    pub(super) outlet: Outlet,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Peer {
    /// Starts a process, or prepares to connect.
    pub(super) fn start(
        number: usize,
        launch: &Launch,
        most: usize,
        events: Events,
        written: Arc<Notify>,
    ) -> Result<Peer, String> {
        let stop = CancellationToken::new();
        let (outlet, task) = match launch {
            Launch::Process { command, env, folder } => {
                let mut process = Process::start(command, env, folder.as_ref())?;
                let (Some(stdin), Some(stdout)) = (process.child.stdin.take(), process.child.stdout.take())
                else {
                    return Err("the server has no pipes".into());
                };
                let task = read_process(number, process, stdout, most, events, stop.clone());
                (Outlet::new(stdin, written), tokio::spawn(task))
            }
            Launch::Http { url, headers } => {
                http::start(number, url, headers, most, events, written, stop.clone())?
            }
        };
        Ok(Peer { outlet, stop, task })
    }

    /// Writes what waits, gives the server a moment to end, and ends it.
    pub(super) async fn close(mut self) {
        self.outlet.close().await;
        self.stop.cancel();
        let _ = timeout(2 * GRACE, &mut self.task).await;
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One line of a peer.
pub(super) enum Line {
    Text(String),
    TooLong,
}

/// Reads lines, each of a limited length.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    most: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R, most: usize) -> Lines<R> {
        Lines { from: BufReader::with_capacity(64 << 10, from), line: Vec::new(), most }
    }

    /// The next line that is not empty; `None` at the end. A future of it may be dropped.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            let chunk = self.from.fill_buf().await.ok()?;
            if chunk.is_empty() {
                return None;
            }
            let end = chunk.iter().position(|b| *b == b'\n');
            let taken = end.map_or(chunk.len(), |at| at);
            if self.line.len() + taken > self.most {
                return Some(Line::TooLong);
            }
            self.line.extend_from_slice(&chunk[..taken]);
            self.from.consume(end.map_or(taken, |at| at + 1));
            if end.is_some() {
                let text = String::from_utf8_lossy(&self.line).into_owned();
                self.line.clear();
                // An empty line is no message.
                if !text.trim().is_empty() {
                    return Some(Line::Text(text));
                }
            }
        }
    }
}

/// Reads standard input in a thread of its own, until the end or until a line is too long. The thread stays
/// until there is a line that nobody takes.
pub(super) fn read_stdin(most: usize) -> mpsc::Receiver<Line> {
    let (send, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut from = io::BufReader::with_capacity(64 << 10, io::stdin());
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        loop {
            let mut line = Vec::new();
            // What can't be read is the end.
            if io::BufRead::read_until(&mut io::Read::take(&mut from, limit), b'\n', &mut line).is_err() {
                return;
            }
            let is_whole = line.pop_if(|b| *b == b'\n').is_some();
            let line = match String::from_utf8_lossy(&line) {
                _ if !is_whole && line.len() <= most => return,
                _ if !is_whole => Line::TooLong,
                text if text.trim().is_empty() => continue,
                text => Line::Text(text.into_owned()),
            };
            let is_last = matches!(line, Line::TooLong);
            if send.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    lines
}

/// Tells of the lines of a process until it ends or is stopped, and of its end.
async fn read_process(
    number: usize,
    process: Process,
    stdout: impl AsyncRead + Unpin,
    most: usize,
    events: Events,
    stop: CancellationToken,
) {
    let mut lines = Lines::new(stdout, most);
    let why = loop {
        let line = tokio::select! {
            () = stop.cancelled() => break None,
            line = lines.next() => line,
        };
        match line {
            Some(Line::Text(line)) => {
                if events.send((number, Event::Line(line))).await.is_err() {
                    break None;
                }
            }
            Some(Line::TooLong) => break Some(too_long(most)),
            None => break None,
        }
    };
    let status = process.end(why.is_none()).await;
    let why = why.unwrap_or_else(|| match status {
        Some(status) => format!("it ended with {status}"),
        None => "it closed its standard output".into(),
    });
    let _ = events.send((number, Event::Gone(why))).await;
}

pub(super) fn too_long(most: usize) -> String {
    format!("a message of more than {most} bytes")
}

/// A server's process with what it has started.
struct Process {
    child: Child,
}

impl Process {
    fn start(
        words: &[OsString],
        env: &[(String, String)],
        folder: Option<&PathBuf>,
    ) -> Result<Process, String> {
        let Some((program, args)) = words.split_first() else { return Err("no command was given".into()) };
        let mut start = Command::new(program);
        start
            .args(args)
            .envs(env.iter().map(|(n, v)| (n, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = folder {
            start.current_dir(folder);
        }
        #[cfg(unix)]
        start.process_group(0);
        let shown = |program: &OsStr| program.to_string_lossy().into_owned();
        let child = start
            .spawn()
            .map_err(|e| format!("cannot start `{}`: {}", shown(program), session::load::reason(&e)))?;
        Ok(Process { child })
    }

    /// Ends it, after a while in which it may end by itself.
    async fn end(mut self, politely: bool) -> Option<ExitStatus> {
        let status = match politely {
            true => timeout(GRACE, self.child.wait()).await.ok().and_then(Result::ok),
            false => None,
        };
        self.kill();
        match status {
            Some(status) => Some(status),
            None => timeout(GRACE, self.child.wait()).await.ok().and_then(Result::ok),
        }
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok())
            && let Some(leader) = rustix::process::Pid::from_raw(pid)
        {
            // Nobody is left: fine.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
