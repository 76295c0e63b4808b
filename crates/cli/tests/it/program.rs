//! The program `entail`, run to its end.

use std::path::Path;
use std::process::{Command, Stdio};

/// The program with arguments, in a folder.
pub fn entail(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(args).current_dir(dir);
    command
}

/// Runs a command without standard input. Gives its status, standard output and standard error.
pub fn ran(command: &mut Command) -> (i32, String, String) {
    let out = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}
