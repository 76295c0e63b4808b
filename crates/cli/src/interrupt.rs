//! Ctrl-C, and the signals that end a process from outside: what is being done ends in peace, and the process
//! with 128 and the number of the signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP.
//!
//! Entry points: [`listen`] at the beginning of a command that runs programs, [`cancels`] when there is
//! something to cancel.
//!
//! Invariant: from [`listen`] on, such a signal never ends the process without its status and a word about
//! it; processes of tools end with the run.
//! Invariant: a second Ctrl-C or SIGTERM during a run ends the process at once.

use runtime::CancellationToken;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use tokio::runtime::Runtime;

/// Token that a signal cancels; `None` before a run starts.
static RUN: Mutex<Option<CancellationToken>> = Mutex::new(None);

/// The status that the first signal asks for; Ctrl-C's before there is one.
static STATUS: AtomicU8 = AtomicU8::new(INTERRUPT);

/// The status after Ctrl-C.
const INTERRUPT: u8 = 130;
/// The status after a terminal was closed.
const HANGUP: u8 = 129;

/// The exit status of what was canceled.
pub fn status() -> u8 {
    STATUS.load(Ordering::Relaxed)
}

/// Takes the signals over from the system. If that is impossible, they end the process as they do by
/// themselves.
pub fn listen() {
    let (ready, is_ready) = mpsc::channel();
    // A thread of its own: the runtime of a run does not exist yet, and may be busy later.
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let Ok(mut signals) = Signals::new() else { return };
            // Nobody listens if the main thread has ended, and then this one ends with it.
            let _ = ready.send(());
            while let Some(status) = signals.next().await {
                let run = RUN.lock().unwrap_or_else(PoisonError::into_inner).clone();
                match run {
                    // A terminal that is closed is often followed by SIGTERM: that is one wish.
                    Some(run) if run.is_cancelled() => {
                        if status != HANGUP && self::status() != HANGUP {
                            std::process::exit(self::status().into());
                        }
                    }
                    Some(run) => {
                        STATUS.store(status, Ordering::Relaxed);
                        run.cancel();
                    }
                    None => end(status),
                }
            }
        });
    });
    // An error means that the thread has ended.
    let _ = is_ready.recv();
}

/// From now on a signal cancels this.
pub fn cancels(run: CancellationToken) {
    *RUN.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
}

/// Waits until Ctrl-C is pressed or the process is asked to end. A second time ends it at once.
#[cfg(any(feature = "engine", feature = "serve"))]
pub async fn stopped(stop: CancellationToken) {
    for end in [false, true] {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminated) = signal(SignalKind::terminate()) else { return };
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        if end {
            std::process::exit(130);
        }
        stop.cancel();
    }
}

/// Waits until a signal has come.
#[cfg(feature = "engine")]
pub async fn wait() {
    let cancel = CancellationToken::new();
    cancels(cancel.clone());
    cancel.cancelled().await;
}

/// Carries something out until it is done or canceled; `None` if it was canceled. Processes that it started
/// end with the runtime.
pub fn unless_canceled<T>(runtime: &Runtime, work: impl Future<Output = T>) -> Option<T> {
    let cancel = CancellationToken::new();
    cancels(cancel.clone());
    runtime.block_on(async {
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            done = work => Some(done),
        }
    })
}

/// Ends the handling of an interruption once the canceled run has ended. The process continues unless it was
/// told to exit.
pub fn over() {
    if status() != INTERRUPT {
        std::process::exit(status().into());
    }
    *RUN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

#[allow(clippy::print_stderr, reason = "the last words of the process")]
fn end(status: u8) -> ! {
    eprintln!("error[cancelled]: canceled before anything was run");
    std::process::exit(status.into())
}

/// The signals that cancel.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// `None` if the process was started to outlive the terminal.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            hangup: ends_with_terminal().then(|| signal(SignalKind::hangup())).transpose()?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The status that the next signal asks for.
    async fn next(&mut self) -> Option<u8> {
        const TERMINATE: u8 = 143;
        let hangup = async {
            match &mut self.hangup {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            got = self.interrupt.recv() => got.map(|()| INTERRUPT),
            got = self.terminate.recv() => got.map(|()| TERMINATE),
            got = hangup => got.map(|()| HANGUP),
        }
    }
}

/// Returns true if SIGHUP (signal 1) ends this process. `nohup` makes the process ignore it. Where the
/// disposition is unknown, the signal is left to the system.
#[cfg(unix)]
fn ends_with_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set & 1 == 0)
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        tokio::signal::windows::ctrl_c().map(Signals)
    }

    async fn next(&mut self) -> Option<u8> {
        self.0.recv().await.map(|()| INTERRUPT)
    }
}
