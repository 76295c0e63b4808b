//! Child processes: their own group, no secrets, nothing left behind.
//!
//! Invariant: a process group ends with this process, also where that is killed (see `watchdog`; on Unix, where there is `/bin/sh`).
//! Invariant: when a [`Group`] is dropped, every process of it is killed.
//! Invariant: every [`Process`] is waited for, also one that nobody waits for any more: none stays behind as a zombie.

use crate::environment::is_secret_name;
use std::fs::File;
use std::io::{Seek, Write};
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// Bytes of standard error that are kept for a message: its end says most.
pub(crate) const STDERR_TAIL: usize = 2048;

/// Kills a process group when dropped.
#[derive(Debug)]
pub(crate) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Group {
        let leader =
            child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(leader) = leader {
            crate::watchdog::watch(leader);
        }
        Group { leader }
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Group {
        Group {}
    }

    /// Kills what is left of the group. Where there are no groups, dropping the child kills it alone.
    pub(crate) fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader.take() {
            // Nobody is left: fine.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
            crate::watchdog::forget(leader);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A child process. One that is dropped before it has ended is killed, and a task waits for it.
#[derive(Debug)]
pub(crate) struct Process {
    /// There until it is dropped.
    child: Option<Child>,
}

impl Process {
    /// Its standard input, output and error, for whoever asks first.
    pub(crate) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        let Some(child) = &mut self.child else { return (None, None, None) };
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    }

    /// Waits until it has ended.
    pub(crate) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(std::io::Error::other("it was given up")),
        }
    }

    /// Its number, until it has been waited for.
    #[cfg(target_os = "linux")]
    fn id(&self) -> Option<u32> {
        self.child.as_ref()?.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // It has been waited for: nothing is left of it.
        if child.id().is_none() {
            return;
        }
        // Dropping a child kills it, and whoever only does that leaves a zombie until some other child ends. Without a runtime
        // this process is about to end, and the system waits for what it leaves.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = child.start_kill();
                let _ = child.wait().await;
            });
        }
    }
}

/// Removes the variables whose names say that they hold secrets, and `hidden` ones, but not those in `keep`.
pub(crate) fn withhold_secrets(command: &mut Command, hidden: &[String], keep: &[String]) {
    let secret = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.to_str().is_none_or(|n| is_secret_name(n) || hidden.iter().any(|h| h == n)));
    for name in secret.filter(|name| !keep.iter().any(|e| name == e.as_str())) {
        command.env_remove(name);
    }
}

/// The standard input of a process that is not started yet, with all of its bytes in it. A process that has it can't begin with a part
/// of it, whenever this process is killed. On Linux it is in memory alone, elsewhere in a temporary file without a name.
///
/// # Errors
/// There is no room for it.
pub(crate) fn whole_input(bytes: &[u8]) -> std::io::Result<Stdio> {
    let mut file = unnamed_file()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

#[cfg(target_os = "linux")]
fn unnamed_file() -> std::io::Result<File> {
    Ok(rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn unnamed_file() -> std::io::Result<File> {
    tempfile::tempfile()
}

/// Starts a process in a group of its own.
pub(crate) fn spawn(mut command: Command, shown: &str) -> Result<(Process, Group), String> {
    command.kill_on_drop(true);
    #[cfg(unix)]
    {
        command.process_group(0);
        crate::watchdog::ready();
    }
    let child = command.spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => format!("cannot start `{shown}`: there is no such program"),
        _ => format!("cannot start `{shown}`: {e}"),
    })?;
    let group = Group::of(&child);
    Ok((Process { child: Some(child) }, group))
}

/// Limits the memory of a process that was just started, and of those that it starts: bytes that it may have writable for itself alone
/// (`RLIMIT_DATA`; address space that is merely reserved does not count). What asks for more is refused it by the system. On
/// systems other than Linux there is no such limit.
#[cfg(target_os = "linux")]
pub(crate) fn limit_memory(child: &Process, bytes: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It has ended already: fine.
        let _ = prlimit(Some(pid), Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) });
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_memory(_: &Process, _: u64) {}

/// The last `most` bytes, as text.
pub(crate) async fn tail(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let mut kept: Vec<u8> = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..n]);
        if kept.len() > 2 * most {
            kept.drain(..kept.len() - most);
        }
    }
    kept.drain(..kept.len().saturating_sub(most));
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::path::Path;

    /// Processes that are given up at once: none may stay in the table of processes, not even as a zombie, although no other child ends later.
    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "looks at processes")]
    async fn a_process_that_is_given_up_is_waited_for() {
        let mut ids = Vec::new();
        for _ in 0..8 {
            let mut command = Command::new("sleep");
            command.arg("600");
            let (process, group) = spawn(command, "sleep").unwrap();
            ids.push(process.id().unwrap());
            drop((group, process));
        }
        let mut polls = 0;
        while ids.iter().any(|id| Path::new("/proc").join(id.to_string()).exists()) {
            polls += 1;
            assert!(polls < 6000, "a zombie of {ids:?} is left");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}
