//! Supervised tools: whatever a tool has started ends with it, and nothing of it reaches this process.
//!
//! Entry points: [`supervise_tools`] for the process that runs programs, [`supervised`] for a command of it,
//! and [`carry_out`] for the program that is started in between.
//!
//! Three processes stand in a row. This one starts its own program again as a *supervisor*, outside of
//! everything that the tool can touch. The supervisor starts the program a third time, which confines itself
//! and then becomes the tool. Descendants of the tool whose parent has gone become children of the supervisor
//! (`PR_SET_CHILD_SUBREAPER`), also those with a session of their own. When the tool has ended, when this
//! process says so (SIGTERM), or when this process is gone, the supervisor kills its children until it has
//! none, and ends as the tool did.
//!
//! The tool has a session of its own, without a terminal. It is in a Landlock domain: it can't trace a
//! process outside, nor read the memory, environment or descriptors of one in `/proc`, nor (Linux 6.12) send
//! a signal to one. Files and the network are not restricted. Rights that a file gives when it is executed
//! (setuid) are not gained.
//!
//! Invariant: the caller waits for the supervisor, so that nothing started by a call remains after it. Limit:
//! a supervisor that is killed from outside of the domain kills only the tool itself.

use landlock::{
    AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getppid,
    kill_process, pidfd_open, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    setrlimit, setsid, wait,
};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// The first argument of the program as a supervisor, and as what becomes the tool.
const SUPERVISE: &str = "__supervise";
const CONFINE: &str = "__confine";

/// The program of this process, also if its file has been replaced.
const PROGRAM: &str = "/proc/self/exe";

/// The exit status of a tool that can't be started, as shells have it.
const NOT_STARTED: u8 = 126;

/// True if the program of this process calls [`carry_out`] when it begins.
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Has the tools of this process supervised, and keeps other processes of the same user out of its memory.
/// Its program must call [`carry_out`] before it does anything else.
pub(crate) fn supervise_tools() {
    ENABLED.store(Path::new(PROGRAM).exists(), Ordering::Relaxed);
    // Where that can't be had, the domain of the tools keeps them out.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Returns whether the tools of this process are supervised.
pub(crate) fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// The command that starts a command under a supervisor, with its arguments, variables and directory; `None`
/// if tools of this process are not supervised. `memory` is the most bytes that it may have writable for
/// itself alone.
pub(crate) fn supervised(command: &Command, memory: Option<u64>) -> Option<Command> {
    if !is_enabled() {
        return None;
    }
    let mut outer = Command::new(PROGRAM);
    let words = [SUPERVISE.to_string(), getpid().to_string(), memory.unwrap_or(0).to_string()];
    outer.args(words).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        outer.current_dir(dir);
    }
    Some(outer)
}

/// Does what the program was started for, if it was started as a supervisor or to become a tool. The first
/// argument is the program's name.
pub(crate) fn carry_out(args: impl IntoIterator<Item = OsString>) -> Option<u8> {
    let mut args = args.into_iter().skip(1);
    let role = args.next()?;
    let is_supervisor = role == SUPERVISE;
    if !is_supervisor && role != CONFINE {
        return None;
    }
    let mut number = || args.next()?.to_str()?.parse::<u64>().ok();
    let (Some(parent), Some(memory)) = (number(), number()) else { return Some(NOT_STARTED) };
    let parent = i32::try_from(parent).ok().and_then(Pid::from_raw);
    let (Some(parent), Some(program)) = (parent, args.next()) else { return Some(NOT_STARTED) };
    let words: Vec<OsString> = args.collect();
    let result = match is_supervisor {
        true => supervise(parent, memory, &program, &words),
        false => confine(parent, memory, &program, &words),
    };
    Some(result.unwrap_or_else(|e| {
        let shown = program.to_string_lossy();
        // Standard error is the tool's only channel for the reason.
        let _ = writeln!(std::io::stderr(), "cannot start `{shown}`: {e}");
        NOT_STARTED
    }))
}

/// Starts the tool, waits until it has ended or is to end, and ends all that is left of it.
fn supervise(parent: Pid, memory: u64, program: &OsStr, words: &[OsString]) -> std::io::Result<u8> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_child_subreaper(Some(getpid()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let ended = runtime.block_on(until_it_ends(parent, memory, program, words));
    end_children();
    let signal = match ended? {
        None => Some(Signal::KILL),
        Some(status) => match status.exit_status() {
            Some(code) => return Ok(u8::try_from(code).unwrap_or(u8::MAX)),
            None => status.terminating_signal().and_then(Signal::from_named_raw),
        },
    };
    let signal = signal.unwrap_or(Signal::KILL);
    kill_process(getpid(), signal)?;
    // It is one that is handled here.
    Ok(u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX))
}

/// Starts the tool and waits for it. Nothing if it is to end before it has.
async fn until_it_ends(
    parent: Pid,
    memory: u64,
    program: &OsStr,
    words: &[OsString],
) -> std::io::Result<Option<WaitStatus>> {
    let mut parent_ends = end_of(parent)?;
    let mut told = signal(SignalKind::terminate())?;
    let mut children = signal(SignalKind::child())?;
    if getppid() != Some(parent) {
        return Ok(None);
    }
    let mut command = Command::new(PROGRAM);
    command.args([CONFINE.to_string(), getpid().to_string(), memory.to_string()]);
    let tool = command.arg(program).args(words).spawn()?;
    let tool = i32::try_from(tool.id()).ok().and_then(Pid::from_raw);
    loop {
        tokio::select! {
            _ = &mut parent_ends => return Ok(None),
            _ = told.recv() => return Ok(None),
            _ = children.recv() => {
                // Orphans come here as well, and are no zombies for long.
                while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                    if Some(pid) == tool {
                        return Ok(Some(status));
                    }
                }
            }
        }
    }
}

/// Tells when a process has ended. A thread waits for that, until this process ends.
fn end_of(process: Pid) -> std::io::Result<oneshot::Receiver<()>> {
    let handle = pidfd_open(process, PidfdFlags::empty())?;
    let (tell, told) = oneshot::channel();
    std::thread::Builder::new().spawn(move || {
        // If it can't be waited for, it is taken for gone: better no tool than an unsupervised one.
        while poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) == Err(Errno::INTR) {}
        let _ = tell.send(());
    })?;
    Ok(told)
}

/// Kills all descendants: the children, and processes reparented by that, until there are none. An unreaped
/// child keeps its process id, so that no other process is killed.
fn end_children() {
    loop {
        let mut killed = false;
        for child in children() {
            killed |= kill_process(child, Signal::KILL).is_ok();
        }
        // One of those that were killed ends soon; without any there may be one that was just started.
        let options = if killed { WaitOptions::empty() } else { WaitOptions::NOHANG };
        match wait(options) {
            Err(Errno::CHILD) => return,
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Ok(Some(_)) | Err(_) => {}
        }
    }
}

/// The children of this process, those that have ended and were not waited for among them.
fn children() -> Vec<Pid> {
    let read = |task: fs::DirEntry| fs::read_to_string(task.path().join("children"));
    let lists = fs::read_dir("/proc/self/task").and_then(|tasks| tasks.map(|t| read(t?)).collect());
    let lists: Vec<String> = match lists {
        Ok(lists) => lists,
        // A kernel without these lists.
        Err(_) => vec![children_of_all()],
    };
    let numbers = lists.iter().flat_map(|list| list.split_whitespace());
    numbers.filter_map(|n| n.parse().ok().and_then(Pid::from_raw)).collect()
}

/// The numbers of all processes whose parent this one is.
fn children_of_all() -> String {
    let this = getpid().to_string();
    let mut found = String::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // Behind the name, which may have anything in it: the state, the parent.
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        if parent == Some(&this) {
            found.push_str(&entry.file_name().to_string_lossy());
            found.push(' ');
        }
    }
    found
}

/// Confines this process and becomes the tool. Comes back only if that fails.
fn confine(supervisor: Pid, memory: u64, program: &OsStr, words: &[OsString]) -> std::io::Result<u8> {
    setsid()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(supervisor) {
        return Ok(NOT_STARTED);
    }
    if memory > 0 {
        setrlimit(Resource::Data, Rlimit { current: Some(memory), maximum: Some(memory) })?;
    }
    // A kernel without Landlock starts it all the same: docs/security.md says what does not hold then.
    let _ = isolate();
    Err(Command::new(program).args(words).exec())
}

/// Puts this process into a Landlock domain, out of which it can't look or send signals.
fn isolate() -> Result<(), landlock::RulesetError> {
    let rules = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    if let Ok(scoped) = rules().scope(Scope::Signal) {
        return scoped.create()?.restrict_self().map(|_| ());
    }
    // Before Linux 6.12: a domain that allows everything about files. Mounting is refused in it.
    let Ok(root) = PathFd::new("/") else { return Ok(()) };
    let all = rules().handle_access(AccessFs::Refer)?.create()?;
    all.add_rule(PathBeneath::new(root, AccessFs::Refer))?.restrict_self().map(|_| ())
}
