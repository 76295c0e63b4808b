//! Tools that are processes.
//!
//! Invariant: no shell. Data becomes arguments and standard input, never a program's name or a command line.
//! Invariant: when a call ends, in whatever way, its process group is killed.

use super::{Template, ToolLimits, as_json, result};
use crate::environment::is_secret_name;
use core_ir::{Data, Name, Type};
use diagnostics::clip_to as clip;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// Bytes of standard error that are kept for a message: its end says most.
const STDERR_TAIL: usize = 2048;

#[derive(Debug)]
pub(super) struct Exec {
    program: String,
    args: Vec<Template>,
    /// Names of variables that it gets although they hold secrets.
    env: Vec<String>,
    timeout: Option<Duration>,
}

/// Kills a process group when dropped.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Group {
        let leader =
            child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Group { leader }
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Group {
        Group {}
    }

    /// Kills what is left of the group. Where there are no groups, dropping the child kills it alone.
    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader.take() {
            // Nobody is left: fine.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

enum Broken {
    Output(usize),
    Io(std::io::Error),
}

impl Exec {
    pub(super) fn read(
        words: &Data,
        params: &[&str],
        timeout: Option<Duration>,
        env: Option<&Data>,
    ) -> Result<Exec, String> {
        let Data::List(words) = words else {
            return Err(format!("`exec` is {}, not a list of strings", words.kind()));
        };
        let mut texts = words.iter().map(|w| w.as_str().ok_or("`exec` has an item that is not a string"));
        let Some(program) = texts.next().transpose()? else { return Err("`exec` names no program".into()) };
        let name = Template::read(program, params)?;
        if name.has_holes() {
            return Err("the program of `exec` depends on an argument".into());
        }
        let program = name.before_holes().to_string();
        if program.is_empty() {
            return Err("`exec` names no program".into());
        }
        let args = texts.map(|t| Template::read(t?, params)).collect::<Result<_, String>>()?;
        let env = match env {
            None => Vec::new(),
            Some(Data::List(names)) => {
                let names = names.iter().map(|n| n.as_str().map(String::from));
                names.collect::<Option<_>>().ok_or("`env` has an item that is not a string")?
            }
            Some(other) => return Err(format!("`env` is {}, not a list of names", other.kind())),
        };
        Ok(Exec { program, args, env, timeout })
    }

    pub(super) async fn call(
        &self,
        args: &[(Name, Data)],
        ty: &Type,
        limits: &ToolLimits,
        hidden: &[String],
    ) -> Result<Data, String> {
        let shown = clip(&self.program, 80);
        let mut command = Command::new(&self.program);
        for template in &self.args {
            let word = template.fill(args, |part| {
                if part.contains('\0') {
                    Err("an argument contains a NUL character".into())
                } else {
                    Ok(part)
                }
            })?;
            command.arg(word);
        }
        let secret = std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name.to_str().is_none_or(|n| is_secret_name(n) || hidden.iter().any(|h| h == n)));
        for name in secret.filter(|name| !self.env.iter().any(|e| name == e.as_str())) {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => format!("cannot start `{shown}`: there is no such program"),
            _ => format!("cannot start `{shown}`: {e}"),
        })?;
        let mut group = Group::of(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let input = as_json(args).to_string();
        let limit = self.timeout.unwrap_or(limits.timeout);
        let all = async {
            tokio::try_join!(
                async {
                    let status = child.wait().await.map_err(Broken::Io);
                    // What it left behind ends with it; otherwise the pipes might never close.
                    group.kill();
                    status
                },
                read(stdout, limits.max_output),
                async { Ok(tail(stderr, STDERR_TAIL).await) },
                async {
                    if let Some(mut pipe) = stdin {
                        // A program need not read its input.
                        let _ = pipe.write_all(input.as_bytes()).await;
                    }
                    Ok(())
                },
            )
        };
        let ended = tokio::time::timeout(limit, all).await;
        group.kill();
        let (status, out, err, ()) = match ended {
            Ok(Ok(parts)) => parts,
            Ok(Err(Broken::Output(most))) => {
                let _ = child.wait().await;
                return Err(format!("`{shown}` was killed: it wrote more than {most} bytes"));
            }
            Ok(Err(Broken::Io(e))) => return Err(format!("`{shown}`: {e}")),
            Err(_) => {
                let _ = child.wait().await;
                return Err(format!("`{shown}` was killed: it took longer than {} s", limit.as_secs_f64()));
            }
        };
        let said = match err.trim() {
            "" => String::new(),
            text => format!("; it said `{}`", clip(text, 500)),
        };
        if !status.success() {
            // `exit status: 3` or `signal: 9 (SIGKILL)`
            return Err(format!("`{shown}` failed with {status}{said}"));
        }
        result(&out, ty).map_err(|why| format!("`{shown}`: {why}{said}"))
    }
}

/// Everything, unless it is too much.
async fn read(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> Result<Vec<u8>, Broken> {
    let Some(pipe) = pipe else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    pipe.take(most as u64 + 1).read_to_end(&mut out).await.map_err(Broken::Io)?;
    if out.len() > most { Err(Broken::Output(most)) } else { Ok(out) }
}

/// The last `most` bytes, as text.
async fn tail(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> String {
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
