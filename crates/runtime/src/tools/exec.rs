//! Tools that are processes.
//!
//! Invariant: no shell. Data becomes arguments and standard input, never a program's name or a command line.
//! Invariant: when a call ends, in whatever way, its process and what that has started are killed.
//! Invariant: the arguments are in the standard input before the process exists, so none begins with a part
//! of them.

use super::{Template, ToolError, ToolLimits, as_json, result};
use crate::process::{self, STDERR_TAIL, tail};
use core_ir::{Data, Name, Type};
use diagnostics::clip_to as clip;
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

#[derive(Debug)]
pub(super) struct Exec {
    program: String,
    args: Vec<Template>,
    /// Names of variables that it gets although they hold secrets.
    env: Vec<String>,
    timeout: Option<Duration>,
    /// Bytes.
    memory: Option<u64>,
}

enum OutputError {
    Output(usize),
    Io(std::io::Error),
}

impl Exec {
    pub(super) fn read(
        words: &Data,
        params: &[&str],
        timeout: Option<Duration>,
        env: Vec<String>,
        memory: Option<u64>,
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
        Ok(Exec { program, args, env, timeout, memory })
    }

    /// The program, a path or a name that is looked for in `PATH`.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    pub(super) async fn call(
        &self,
        args: &[(Name, Data)],
        ty: &Type,
        limits: &ToolLimits,
        hidden: &[String],
        key: Option<String>,
    ) -> Result<Data, ToolError> {
        let shown = clip(&self.program, 80);
        let mut command = Command::new(&self.program);
        for template in &self.args {
            let word = template.fill(args, |part| {
                if part.contains('\0') {
                    Err("an argument contains a NUL character".to_string())
                } else {
                    Ok(part)
                }
            })?;
            command.arg(word);
        }
        process::withhold_secrets(&mut command, hidden, &self.env);
        if let Some(key) = key {
            command.env("ENTAIL_IDEMPOTENCY_KEY", key);
        }
        let input = process::whole_input(as_json(args).to_string().as_bytes())
            .map_err(|e| format!("cannot pass the arguments to `{shown}`: {e}"))?;
        let memory = self.memory.unwrap_or(limits.max_memory);
        let (mut child, mut group) = process::spawn(command, input, Some(memory), &shown)?;
        let (_, stdout, stderr) = child.pipes();
        let limit = self.timeout.unwrap_or(limits.timeout);
        let all = async {
            tokio::try_join!(
                async {
                    let status = child.wait().await.map_err(OutputError::Io);
                    // Its leftover processes end with it; otherwise the pipes might never close.
                    group.kill();
                    status
                },
                read(stdout, limits.max_output),
                async { Ok(tail(stderr, STDERR_TAIL).await) },
            )
        };
        let ended = tokio::time::timeout(limit, all).await;
        group.kill();
        let (status, out, err) = match ended {
            Ok(Ok(parts)) => parts,
            Ok(Err(OutputError::Output(most))) => {
                let _ = child.wait().await;
                return Err(format!("`{shown}` was killed: it wrote more than {most} bytes").into());
            }
            Ok(Err(OutputError::Io(e))) => return Err(format!("`{shown}`: {e}").into()),
            Err(_) => {
                let _ = child.wait().await;
                let why = format!("`{shown}` was killed: it took longer than {} s", limit.as_secs_f64());
                return Err(ToolError::Late(why));
            }
        };
        let said = match err.trim() {
            "" => String::new(),
            text => format!("; its output: `{}`", clip(text, 500)),
        };
        if !status.success() {
            // `exit status: 3` or `signal: 9 (SIGKILL)`
            let help = match process::is_denied_rights(&self.program) {
                true => " (help: a tool gains no rights by setuid; let a service that has them do it)",
                false => "",
            };
            return Err(format!("`{shown}` failed with {status}{said}{help}").into());
        }
        Ok(result(&out, ty).map_err(|why| format!("`{shown}`: {why}{said}"))?)
    }
}

/// Everything, unless it is too much.
async fn read(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> Result<Vec<u8>, OutputError> {
    let Some(pipe) = pipe else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    pipe.take(most as u64 + 1).read_to_end(&mut out).await.map_err(OutputError::Io)?;
    if out.len() > most { Err(OutputError::Output(most)) } else { Ok(out) }
}
