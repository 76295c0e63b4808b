//! The `entail` command; everything is in the library's [`entail::command_line`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(entail::command_line(std::env::args_os()))
}
