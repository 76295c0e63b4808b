//! The `entail` command; everything is in the library's [`entail::command_line`].

use std::process::ExitCode;

/// Linting is mostly small allocations; the system's allocator took a fifth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(status) = entail::supervise(std::env::args_os()) {
        return ExitCode::from(status);
    }
    ExitCode::from(entail::command_line(std::env::args_os()))
}
