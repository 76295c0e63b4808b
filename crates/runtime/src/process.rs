//! Child processes: no secrets, nothing left behind.
//!
//! A process of the program `entail` on Linux has its children supervised (see `supervisor`): all that they
//! start ends with them. Elsewhere, and where a run is embedded in another program, a child has a process
//! group, and what leaves the group is not found.
//!
//! Invariant: a child and what it has started end with this process, also where that is killed. A process
//! group does on Unix where there is `/bin/sh` (see `watchdog`).
//! Invariant: when a [`ProcessGroup`] is dropped, every process of it is killed.
//! Invariant: every [`Process`] is reaped, also one without a caller, so that none remains as a zombie.

use crate::environment::is_secret_name;
use crate::tools::ToolError;
use crate::{ConfigError, ConfigErrorKind};
use diagnostics::clip_to as clip;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Notify;

/// Bytes of standard error that are kept for a message: its end says most.
pub(crate) const STDERR_TAIL: usize = 2048;

/// A process and what it has started. Kills them when dropped.
#[derive(Debug)]
pub(crate) struct ProcessGroup(Option<Members>);

#[derive(Debug)]
enum Members {
    /// Members under a supervisor, which ends them when it is told to.
    #[cfg(target_os = "linux")]
    Supervised(std::os::fd::OwnedFd),
    /// Members of the process group that has this leader.
    #[cfg(unix)]
    Led(rustix::process::Pid),
}

impl ProcessGroup {
    #[cfg(unix)]
    fn of(child: &Child, is_supervised: bool) -> ProcessGroup {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        let Some(pid) = pid else { return ProcessGroup(None) };
        #[cfg(target_os = "linux")]
        if is_supervised {
            // Nobody has waited for the child, so the number is its own. A supervisor that can't be told ends
            // with this process.
            let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
            return ProcessGroup(handle.ok().map(Members::Supervised));
        }
        let _ = is_supervised;
        crate::watchdog::watch(pid);
        ProcessGroup(Some(Members::Led(pid)))
    }

    #[cfg(not(unix))]
    fn of(_: &Child, _: bool) -> ProcessGroup {
        ProcessGroup(None)
    }

    /// Kills what is left of the group. Where there are no groups, dropping the child kills it alone.
    pub(crate) fn kill(&mut self) {
        match self.0.take() {
            #[cfg(target_os = "linux")]
            Some(Members::Supervised(supervisor)) => {
                // It has ended: fine.
                let _ = rustix::process::pidfd_send_signal(&supervisor, rustix::process::Signal::TERM);
            }
            #[cfg(unix)]
            Some(Members::Led(leader)) => {
                // Nobody is left: fine.
                let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
                crate::watchdog::forget(leader);
            }
            None => {}
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A child process. One that is dropped before it has ended is killed, and a task waits for it.
#[derive(Debug)]
pub(crate) struct Process {
    /// There until it is dropped.
    child: Option<Child>,
    /// It ends by itself when its [`ProcessGroup`] is killed, and must not be killed before it has ended
    /// others.
    is_supervisor: bool,
}

impl Process {
    /// Takes the standard input, output and error; the first caller gets them.
    pub(crate) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        let Some(child) = &mut self.child else { return (None, None, None) };
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    }

    /// Waits until it has ended.
    pub(crate) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(std::io::Error::other("it was canceled")),
        }
    }

    /// Its number, until it has been waited for.
    #[cfg(all(test, target_os = "linux"))]
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
        // Dropping a child kills it, but leaves a zombie until another child ends. Without a runtime this
        // process is about to end, and the system reaps its children.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let is_supervisor = self.is_supervisor;
            let ending = EndingProcess::begin();
            runtime.spawn(async move {
                let _ending = ending;
                if !is_supervisor {
                    let _ = child.start_kill();
                }
                let _ = child.wait().await;
            });
        }
    }
}

/// Number of killed processes that have not ended yet.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// Told when one of them has ended.
static ENDED: Notify = Notify::const_new();

/// Killed process that has not ended yet.
struct EndingProcess;

impl EndingProcess {
    fn begin() -> EndingProcess {
        ENDING.fetch_add(1, Ordering::SeqCst);
        EndingProcess
    }
}

impl Drop for EndingProcess {
    fn drop(&mut self) {
        ENDING.fetch_sub(1, Ordering::SeqCst);
        ENDED.notify_waiters();
    }
}

/// Waits a limited time until killed processes have ended.
pub(crate) async fn all_ended() {
    if ENDING.load(Ordering::SeqCst) == 0 {
        return;
    }
    let wait = async {
        loop {
            // Before looking, so that no end is missed in between.
            let next = ENDED.notified();
            if ENDING.load(Ordering::SeqCst) == 0 {
                return;
            }
            next.await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(2), wait).await;
}

/// Removes the variables whose names say that they hold secrets, and `hidden` ones, but not those in `keep`.
pub(crate) fn withhold_secrets(command: &mut std::process::Command, hidden: &[String], keep: &[String]) {
    let secret = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.to_str().is_none_or(|n| is_secret_name(n) || hidden.iter().any(|h| h == n)));
    for name in secret.filter(|name| !keep.iter().any(|e| name == e.as_str())) {
        command.env_remove(name);
    }
}

/// The standard input of a process that is not started yet, with all of its bytes in it. A process that has
/// it can't begin with a part of it, whenever this process is killed. On Linux it is in memory alone,
/// elsewhere in a temporary file without a name.
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

/// Starts a process with pipes for its output, which ends with all that it starts when its group is killed or
/// dropped. `memory` is how many bytes it and each of those may have writable for itself alone
/// (`RLIMIT_DATA`; address space that is merely reserved does not count). What asks for more is refused it by
/// the system. On systems other than Linux there is no such limit.
pub(crate) fn spawn(
    command: std::process::Command,
    stdin: Stdio,
    memory: Option<u64>,
    shown: &str,
) -> Result<(Process, ProcessGroup), ToolError> {
    // A supervisor is always there: whether its program is must be known before.
    look_up(command.get_program())?;
    let (command, is_supervisor) = under_supervision(command, memory);
    let mut command = Command::from(command);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(!is_supervisor);
    #[cfg(unix)]
    {
        command.process_group(0);
        if !is_supervisor {
            crate::watchdog::ready();
        }
    }
    let child = command.spawn().map_err(|e| format!("cannot start `{shown}`: {e}"))?;
    let group = ProcessGroup::of(&child, is_supervisor);
    if !is_supervisor {
        limit_memory(&child, memory);
    }
    Ok((Process { child: Some(child), is_supervisor }, group))
}

/// Looks for a program without starting it: a path, or a name in a directory of `PATH`. Returns its file,
/// unless only the system knows where it looks.
///
/// # Errors
/// There is no such program, it may not be executed, or the interpreter that its first line names is not
/// there.
pub(crate) fn look_up(program: &OsStr) -> Result<Option<PathBuf>, ConfigError> {
    let path = Path::new(program);
    let shown = clip(&path.display().to_string(), 200).to_string();
    let unusable = |message: String, help: &str| {
        Err(ConfigError::new(message).with_help(help).of_kind(ConfigErrorKind::NotInstalled))
    };
    let candidates: Vec<_> = if path.components().count() > 1 || path.is_absolute() {
        vec![path.to_path_buf()]
    } else if cfg!(unix)
        && let Some(all) = std::env::var_os("PATH")
    {
        std::env::split_paths(&all).map(|dir| dir.join(path)).collect()
    } else {
        // Elsewhere, and without `PATH`, the system completes names in its own ways.
        return Ok(None);
    };
    let files: Vec<_> = candidates.into_iter().filter(|c| c.is_file()).collect();
    match files.iter().find(|file| is_executable(file)) {
        Some(file) => match interpreter(file).filter(|i| !is_executable(Path::new(i))) {
            Some(missing) => unusable(
                format!("`{shown}` needs the interpreter `{}`, which is not there", clip(&missing, 200)),
                "install it, or correct the first line of the program",
            ),
            None => Ok(Some(file.clone())),
        },
        None if files.is_empty() => {
            unusable(format!("program `{shown}` not found"), "install it, or correct its name")
        }
        None => unusable(format!("`{shown}` is not executable"), "make it executable with `chmod +x`"),
    }
}

/// Returns whether a program is to run with the rights of its owner or group (setuid), which a supervised
/// tool does not gain.
#[cfg(target_os = "linux")]
pub(crate) fn is_denied_rights(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let file = look_up(program.as_ref()).ok().flatten();
    let mode = file.and_then(|f| f.metadata().ok()).map_or(0, |m| m.permissions().mode());
    crate::supervisor::is_enabled() && mode & 0o6000 != 0
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_denied_rights(_: &str) -> bool {
    false
}

/// Returns whether a file may be executed.
#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// The interpreter that the first line of a script names: `#!/bin/sh`.
fn interpreter(file: &Path) -> Option<String> {
    // Linux reads as much.
    let mut line = Vec::new();
    File::open(file).ok()?.take(256).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split_whitespace().next().map(String::from)
}

/// The command as it is started, and whether by a supervisor.
#[cfg(target_os = "linux")]
fn under_supervision(command: std::process::Command, memory: Option<u64>) -> (std::process::Command, bool) {
    match crate::supervisor::supervised(&command, memory) {
        Some(supervised) => (supervised, true),
        None => (command, false),
    }
}

#[cfg(not(target_os = "linux"))]
fn under_supervision(command: std::process::Command, _: Option<u64>) -> (std::process::Command, bool) {
    (command, false)
}

/// Limits the memory of a process that was just started.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child, memory: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let (Some(pid), Some(bytes)) = (pid, memory) {
        // It has ended already: fine.
        let _ = prlimit(Some(pid), Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) });
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child, _: Option<u64>) {}

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

    /// Processes that are given up at once: none may stay in the table of processes, not even as a zombie,
    /// although no other child ends later.
    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "looks at processes")]
    async fn a_process_that_is_given_up_is_waited_for() {
        let mut ids = Vec::new();
        for _ in 0..8 {
            let mut command = std::process::Command::new("sleep");
            command.arg("600");
            let (process, group) = spawn(command, Stdio::null(), None, "sleep").unwrap();
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
