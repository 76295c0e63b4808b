//! Asking the person at the terminal whether a tool may be called.
//!
//! Entry point: [`Terminal::open`].
//!
//! Invariant: only `y` or `yes`, typed after the question was shown, approves.
//! Invariant: only the answer to a displayed question is read. Later input is left to the terminal's next
//! reader.
//! Invariant: what is shown cannot move the cursor, reorder text or look like the label: values are JSON, and
//! everything that controls a terminal is escaped.

use diagnostics::visible;
use runtime::{Approval, Approver, Decider, Via};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, oneshot};

/// Characters of an argument that are shown.
pub(crate) const MAX_ARGUMENT_CHARS: usize = 1000;

/// A terminal with a person at it.
#[derive(Clone, Default)]
pub struct Terminal {
    asking: Arc<AtomicBool>,
    /// Lock held during a question, so that questions of parallel branches come one after another.
    turn: Arc<Mutex<()>>,
}

impl Terminal {
    /// The terminal, if questions can be both seen (on standard error) and answered (from standard input).
    pub fn open() -> Option<Terminal> {
        (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then(Terminal::default)
    }

    /// Returns true if a question stands there, which must not be written over.
    pub fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed)
    }

    /// Approves what the person at the terminal approves.
    pub fn approver(&self) -> Approver {
        let terminal = self.clone();
        Approver::new(move |call| {
            let terminal = terminal.clone();
            Box::pin(async move { terminal.ask(&call).await })
        })
        .answered_by(Decider::new(local_user(), Via::Terminal))
    }

    async fn ask(&self, call: &Approval) -> Result<(), String> {
        let _turn = self.turn.lock().await;
        // Input typed before the question is not an answer to it.
        discard_typed();
        let mut shown = ShownQuestion { asking: &self.asking, answered: false };
        self.asking.store(true, Ordering::Relaxed);
        say(&format!("\r\x1b[2K{}", question(call)));
        let line = read_line().await;
        shown.answered = line.is_some();
        match line {
            Some(line) if is_yes(&line) => Ok(()),
            Some(_) => Err("it was refused at the terminal".into()),
            None => Err("no answer was given at the terminal".into()),
        }
    }
}

/// The name of the local user, as the environment has it.
pub(crate) fn local_user() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|n| std::env::var(n).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(unnamed_user)
}

#[cfg(unix)]
fn unnamed_user() -> String {
    format!("uid {}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn unnamed_user() -> String {
    "local user".into()
}

/// A question that stands at the terminal; it may be dropped before it is answered.
struct ShownQuestion<'a> {
    asking: &'a AtomicBool,
    answered: bool,
}

impl Drop for ShownQuestion<'_> {
    fn drop(&mut self) {
        if !self.answered {
            say("\nnot approved: no answer\n");
        }
        self.asking.store(false, Ordering::Relaxed);
    }
}

/// Writes to the terminal. If that fails, the question stays unseen and so is not approved.
fn say(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Reads a line of standard input; `None` at its end. A read can't be canceled, so it runs on a thread of its
/// own, which first checks that input is available and that the caller still waits.
async fn read_line() -> Option<String> {
    let (give, line) = oneshot::channel();
    std::thread::spawn(move || {
        while !give.is_closed() {
            if something_is_typed() {
                // A terminal gives a line at a time.
                let mut typed = Vec::new();
                let read = std::io::stdin().lock().read_until(b'\n', &mut typed).is_ok_and(|n| n > 0);
                let _ = give.send(read.then(|| String::from_utf8_lossy(&typed).into_owned()));
                return;
            }
        }
    });
    line.await.ok().flatten()
}

/// Returns true if reading standard input would not wait; looked for during a moment.
#[cfg(unix)]
fn something_is_typed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let stdin = std::io::stdin();
    // Where it can't be known, reading tells.
    !matches!(
        poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&moment)),
        Ok(0) | Err(rustix::io::Errno::INTR)
    )
}

#[cfg(not(unix))]
fn something_is_typed() -> bool {
    true
}

#[cfg(unix)]
fn discard_typed() {
    // If it can't be done, the lines that were read are discarded all the same.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed() {}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Asks a question at the terminal until the answer is yes or no; `None` if the input ends before that
/// (Ctrl-D).
pub(crate) fn ask_here(question: &str) -> Option<bool> {
    discard_typed();
    ask_until(question, &mut std::io::stdin().lock())
}

fn ask_until(question: &str, typed: &mut impl BufRead) -> Option<bool> {
    loop {
        say(question);
        let mut line = Vec::new();
        if !typed.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            say("\n");
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        if is_yes(&line) {
            return Some(true);
        }
        if matches!(line.trim().to_ascii_lowercase().as_str(), "n" | "no") {
            return Some(false);
        }
        say("answer `y` or `n`; Ctrl-D leaves it waiting\n");
    }
}

/// Line about a call that untrusted data decided.
pub(crate) const DECIDED: &str =
    "  untrusted data decided that this call is made; the labels say so of every argument\n";

/// A value for a question. Of one that is too long, the texts in it are cut as far as needed, so that none of
/// them keeps what follows from being seen.
pub(crate) fn shown(value: &Value) -> String {
    let whole = value.to_string();
    let fits = |text: &String| text.chars().count() <= MAX_ARGUMENT_CHARS;
    if !value.is_object() && !value.is_array() || fits(&whole) {
        return visible(&whole, MAX_ARGUMENT_CHARS);
    }
    let mut shorter = [400, 200, 100].into_iter().map(|most| with_short_texts(value, most));
    let text = shorter.find(fits).unwrap_or_else(|| with_short_texts(value, 50));
    visible(&text, MAX_ARGUMENT_CHARS)
}

/// A value as JSON in which each text and key has this many characters at most, and the number of those left
/// out.
fn with_short_texts(value: &Value, most: usize) -> String {
    let short = |text: &str| {
        let beginning: String = text.chars().take(most).collect();
        let left = text.chars().count().saturating_sub(most);
        let rest = if left == 0 { String::new() } else { format!(" … and {left} more characters") };
        Value::from(beginning + &rest).to_string()
    };
    let inner = |v: &Value| with_short_texts(v, most);
    match value {
        Value::String(text) => short(text),
        Value::Array(items) => format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(k, v)| format!("{}:{}", short(k), inner(v)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// The question: the tool, and each argument with its label.
fn question(call: &Approval) -> String {
    let mut text = format!("the program asks to call the tool `{}`", visible(&call.tool, MAX_ARGUMENT_CHARS));
    text.push_str(if call.args.is_empty() { " without arguments\n" } else { " with\n" });
    for arg in &call.args {
        let value = shown(&arg.value.to_json());
        let label = arg.label.to_json().to_string();
        let label = if label == "[]" {
            String::new()
        } else {
            format!("  (label {})", visible(&label, MAX_ARGUMENT_CHARS))
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} = {value}{label}", visible(&arg.name, MAX_ARGUMENT_CHARS));
        for reason in arg.reasons() {
            let _ = writeln!(text, "      {}", visible(&reason, 2 * MAX_ARGUMENT_CHARS));
        }
    }
    if call.is_decided {
        text.push_str(DECIDED);
    }
    text.push_str("approve? [y/N] ");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::Data;
    use runtime::ApprovalArg;

    #[test]
    fn questions_show_calls_without_control_characters() {
        let arg =
            |name: &str, value, label| ApprovalArg { name: name.into(), value, label, chains: Vec::new() };
        let call = Approval {
            tool: "send\x1b[2J".into(),
            args: vec![
                arg("to", Data::str("a\u{202e}b\n\u{9b}2J"), Data::list([Data::str("U")])),
                arg("n", Data::Bool(true), Data::list([])),
                arg("body", Data::str("x".repeat(2000)), Data::list([])),
            ],
            is_decided: false,
            channel: Data::list([]),
        };
        let decided = question(&Approval { is_decided: true, ..call.clone() });
        assert!(decided.contains("\n  untrusted data decided that this call is made; "), "{decided}");
        let text = question(&call);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], r"the program asks to call the tool `send\u{1b}[2J` with");
        assert_eq!(lines[1], r#"  to = "a\u{202e}b\n\u{9b}2J"  (label ["U"])"#);
        assert_eq!(lines[2], "  n = true");
        assert!(lines[3].ends_with("xxx … and 1002 more characters"), "{}", lines[3]);
        assert_eq!(lines[4..], ["approve? [y/N] "]);
    }

    #[test]
    fn a_long_text_hides_no_other_part() {
        let note = "x".repeat(5000);
        let text = shown(&serde_json::json!({"note": note, "items": [note], "to": "MALLORY"}));
        assert!(text.ends_with(r#" … and 4600 more characters"],"to":"MALLORY"}"#), "{text}");
        let many = shown(&serde_json::json!([vec!["a\u{202e}"; 999], "MALLORY"]));
        assert!(many.contains(r#""a\u{202e}","a"#) && many.ends_with(" more characters"), "{many}");
    }

    #[test]
    fn a_question_that_waits_is_denied_only_by_a_no() {
        for (typed, answer) in [
            ("y\n", Some(true)),
            ("n\n", Some(false)),
            (" NO\n", Some(false)),
            ("", None),
            ("\n", None),
            ("\n\nperhaps\nyes\n", Some(true)),
            ("perhaps\nn", Some(false)),
        ] {
            assert_eq!(ask_until("approve? [y/n] ", &mut typed.as_bytes()), answer, "{typed:?}");
        }
        let mut bytes: &[u8] = b"\xff\xfe\ny\n";
        assert_eq!(ask_until("approve? [y/n] ", &mut bytes), Some(true));
    }

    #[test]
    fn only_yes_is_yes() {
        for yes in ["y\n", " YES \r\n", "Y"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yy\n", "yes please\n", "да\n"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}
