//! Ctrl-C: ends what is being done in peace, and the process with 130.
//!
//! Entry points: [`listen`] at the beginning of a command that runs programs, [`cancels`] when there is something to
//! cancel.
//!
//! Invariant: from [`listen`] on, Ctrl-C never ends the process without the status 130 and a word about it.
//! Invariant: a second Ctrl-C during a run ends the process at once.

use runtime::CancellationToken;
use std::sync::{Mutex, PoisonError, mpsc};

/// What Ctrl-C cancels; nothing before a run begins.
static RUN: Mutex<Option<CancellationToken>> = Mutex::new(None);

/// Takes Ctrl-C over from the system. If that is impossible, Ctrl-C ends the process as it does by itself.
pub fn listen() {
    let (ready, is_ready) = mpsc::channel();
    // A thread of its own: the runtime of a run does not exist yet, and may be busy later.
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let Ok(mut signal) = signal() else { return };
            // Nobody listens if the main thread has ended, and then this one ends with it.
            let _ = ready.send(());
            while signal.recv().await.is_some() {
                match RUN.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
                    Some(run) if run.is_cancelled() => std::process::exit(130),
                    Some(run) => run.cancel(),
                    None => end(),
                }
            }
        });
    });
    // An error means that the thread has given up.
    let _ = is_ready.recv();
}

/// From now on Ctrl-C cancels this.
pub fn cancels(run: CancellationToken) {
    *RUN.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
}

/// What was to be cancelled has ended, and the process goes on.
pub fn over() {
    *RUN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

#[allow(clippy::print_stderr, reason = "the last words of the process")]
fn end() -> ! {
    eprintln!("error[cancelled]: cancelled before anything was run");
    std::process::exit(130)
}

#[cfg(unix)]
fn signal() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn signal() -> std::io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}
