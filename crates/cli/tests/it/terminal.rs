//! Input and output at a terminal.
#![cfg(target_os = "linux")]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A program at a terminal.
struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    /// Output that no assertion has read yet.
    shown: String,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    /// The command line with these arguments. `typed` is there before it begins.
    fn open(dir: &Path, args: &[&str], typed: &str) -> Terminal {
        Terminal::of(dir, args, typed, &[("TERM", "xterm"), ("NO_COLOR", "1")])
    }

    /// The command line at a terminal that these variables describe.
    fn of(dir: &Path, args: &[&str], typed: &str, terminal: &[(&str, &str)]) -> Terminal {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let side = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut keys = File::from(keys);
        // Held open until the program has it, so that what is typed does not get lost.
        let first = side();
        keys.write_all(typed.as_bytes()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
        for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"]
        {
            command.env_remove(name);
        }
        command
            .env_remove("NO_COLOR")
            .envs(terminal.iter().copied())
            .env("XDG_STATE_HOME", dir)
            .args(args)
            .current_dir(dir);
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        drop(first);
        let (send, screen) = channel();
        let mut seen = keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = seen.read(&mut buffer) {
                if send.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keys, screen, shown: String::new() }
    }

    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until something is shown, and gives all that was shown up to it.
    fn until(&mut self, wanted: &str) -> String {
        loop {
            if let Some(at) = self.shown.find(wanted) {
                let rest = self.shown.split_off(at + wanted.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            match self.screen.recv_timeout(Duration::from_secs(120)) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(e) => panic!("`{wanted}` is not shown ({e}): {}", self.shown),
            }
        }
    }
}

/// A terminal that calls itself dumb shows escapes as text.
#[test]
fn a_dumb_terminal_gets_no_escapes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.lam"), "1 +\n").unwrap();
    let made = "{\"time\":1.5,\"session\":\"a\",\"event\":\"made\",\"tool\":\"fetch\",\"label\":\"[]\"}\n";
    std::fs::write(dir.path().join("log"), made).unwrap();
    let shown = |term: &str, args: &[&str], wanted: &str| {
        Terminal::of(dir.path(), args, "", &[("TERM", term)]).until(wanted)
    };
    let (check, watch) = (["check", "bad.lam"], ["guard", "watch", "log"]);
    assert!(shown("xterm", &check, "bad.lam").contains('\u{1b}'));
    assert!(!shown("dumb", &check, "bad.lam").contains('\u{1b}'));
    assert!(shown("xterm", &watch, "fetch").contains('\u{1b}'));
    assert!(!shown("dumb", &watch, "fetch").contains('\u{1b}'));
}

#[test]
fn lines_that_are_typed_ahead_are_read_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(dir.path(), &["repl"], "20 + 1\n20 + 2\n20 + 3\n");
    for result in ["21\r\n", "22\r\n", "23\r\n"] {
        terminal.until(result);
    }
    // While a tool is at work.
    let nap = "tool nap() -> Str read by {exec: [\"sh\", \"-c\", \"sleep 1; echo rested\"]}\n";
    terminal.types(nap);
    terminal.types("tool[nap] {}\n");
    terminal.until("calling the tool nap");
    terminal.types("20 + 4\n20 + 5\n");
    terminal.until("\"rested\"");
    terminal.until("24\r\n");
    terminal.until("25\r\n");
    terminal.types(":quit\n");
    assert!(terminal.child.wait().unwrap().success());
}

#[test]
fn an_answer_is_what_is_typed_after_the_question_and_what_follows_is_for_the_next_reader() {
    let dir = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(dir.path(), &["repl"], "");
    terminal.until("entail> ");
    let pay =
        "tool pay() -> Str write approve by {exec: [\"sh\", \"-c\", \"echo paid >> ledger; echo paid\"]}\n";
    terminal.types(pay);
    terminal.types("tool[pay] {}\n");
    terminal.until("approve? [y/N] ");
    terminal.types("y\n");
    terminal.until("\"paid\"");
    terminal.until("entail> ");
    for (term, result) in [("20 + 1\n", "21\r\n"), ("20 + 2\n", "22\r\n")] {
        terminal.types(term);
        terminal.until(result);
    }
    // What was typed before the question is no answer to it.
    terminal.types("tool[pay] {}\ny\n");
    terminal.until("approve? [y/N] ");
    terminal.types("n\n");
    terminal.until("it was refused at the terminal");
    assert_eq!(std::fs::read_to_string(dir.path().join("ledger")).unwrap(), "paid\n");
}

#[test]
fn whoever_is_asked_may_give_other_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(dir.path(), &["repl"], "");
    terminal.until("entail> ");
    terminal.types(
        "tool pay(to: Str, n: Num) -> Str write approve by {exec: [\"sh\", \"-c\", \"cat >> ledger; echo paid\"]}\n",
    );
    terminal.types("tool[pay] {to: \"bob\", n: 5}\n");
    terminal.until("approve? [y/N, e changes arguments] ");
    terminal.types("e\n");
    terminal.until("as JSON: ");
    terminal.types("{\"n\": \"many\"}\n");
    terminal.until("the argument `n`");
    terminal.until("approve? [y/N, e changes arguments] ");
    terminal.types("e\n");
    terminal.until("as JSON: ");
    terminal.types("{\"to\": \"carol\"}\n");
    terminal.until("to = \"carol\"");
    terminal.until("approve? [y/N, e changes arguments] ");
    terminal.types("y\n");
    terminal.until("\"paid\"");
    terminal.types(":quit\n");
    assert!(terminal.child.wait().unwrap().success());
    let ledger = std::fs::read_to_string(dir.path().join("ledger")).unwrap();
    assert_eq!(ledger.trim(), r#"{"to":"carol","n":5}"#);
}
