//! Process groups that must not outlive this process, however it ends.
//!
//! A process killed with SIGKILL can't clean up. So a shell runs beside this process and reads the process
//! groups from a private pipe. When this process is gone, the system closes the pipe, and the shell kills the
//! remaining groups and exits. `PR_SET_PDEATHSIG` would not suffice: it is bound to the thread that started
//! the child, and does not apply to grandchildren.
//!
//! Entry points: [`ready`], [`watch`] and [`forget`].
//!
//! Limit: between the start of a process and the line that names its group lies up to a millisecond, in which
//! nothing watches it.
//! Invariant: nothing waits for the shell. If it is missing or does not read, groups are not watched, and
//! everything else works as before.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Pid;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Lines are `+ group` and `- group`. Words alone: what the shell does needs no other program.
const SHELL: &str = r#"
all=
while read -r what group; do
  case $what in
    +) all="$all $group" ;;
    -) left=
       for g in $all; do [ "$g" = "$group" ] || left="$left $g"; done
       all=$left ;;
  esac
done
for g in $all; do kill -s KILL -- "-$g" 2>/dev/null; done
"#;

static DOG: Mutex<Watchdog> = Mutex::new(Watchdog { shell: None, groups: Vec::new() });

struct Watchdog {
    /// The shell and its standard input.
    shell: Option<(Child, ChildStdin)>,
    /// The groups that there are.
    groups: Vec<Pid>,
}

/// Begins to watch. Starting the shell takes milliseconds, in which a process that was started before could
/// go unwatched.
pub(crate) fn ready() {
    let mut dog = DOG.lock().unwrap_or_else(PoisonError::into_inner);
    if dog.shell.is_none() {
        dog.begin();
    }
}

/// Has a group killed if this process ends before [`forget`] is called.
pub(crate) fn watch(group: Pid) {
    let mut dog = DOG.lock().unwrap_or_else(PoisonError::into_inner);
    dog.groups.push(group);
    if dog.shell.is_some() {
        dog.tell('+', group);
    } else {
        dog.begin();
    }
}

/// Nothing is left of the group, or soon will be.
pub(crate) fn forget(group: Pid) {
    let mut dog = DOG.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = dog.groups.iter().position(|g| *g == group) {
        dog.groups.swap_remove(at);
        dog.tell('-', group);
    }
}

impl Watchdog {
    /// Starts a shell, and tells it all groups.
    fn begin(&mut self) {
        let mut command = Command::new("/bin/sh");
        // In a group of its own Ctrl-C does not reach it, and nothing that belongs to others is held open by
        // it.
        command.args(["-c", SHELL]).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut shell) = command.spawn() else { return };
        let Some(input) = shell.stdin.take() else { return };
        // A pipe that is full must not hold up anybody.
        let flags = fcntl_getfl(&input).and_then(|f| fcntl_setfl(&input, f | OFlags::NONBLOCK));
        self.shell = Some((shell, input));
        if flags.is_err() {
            return self.end();
        }
        for group in self.groups.clone() {
            self.tell('+', group);
        }
    }

    fn tell(&mut self, what: char, group: Pid) {
        let line = format!("{what} {}\n", group.as_raw_nonzero());
        // A short line goes into a pipe as a whole or not at all.
        let told = self.shell.as_mut().is_none_or(|(_, input)| input.write_all(line.as_bytes()).is_ok());
        if !told {
            // Its knowledge is stale: better no watchdog than one that kills the wrong processes. The next
            // group starts another.
            self.end();
        }
    }

    fn end(&mut self) {
        if let Some((mut shell, input)) = self.shell.take() {
            // Before its input ends, or it would do its work.
            let _ = shell.kill();
            let _ = shell.wait();
            drop(input);
        }
    }
}
