//! Everything that is written to the terminal or a pipe.

use crate::args::{Color, Format, OutputArgs};
use diagnostics::{Diagnostic, Sources, render};
use serde_json::{Value, json};
use session::load::{reason, remedy};
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// Exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, nothing found: 0.
    Done,
    /// The program, a check or a finding of level error failed: 1.
    Failed,
    /// The request itself is wrong: 2.
    Usage,
    /// Canceled by Ctrl-C: 130; by another signal, 128 and its number.
    Canceled,
}

impl Exit {
    /// The exit status.
    pub fn status(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Canceled => crate::interrupt::status(),
        }
    }
}

/// Returns true if the terminal shows escapes as text, as that of an editor may do.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Output of commands: results go to standard output, everything else to standard error.
pub struct Ui {
    /// The options.
    pub args: OutputArgs,
    color_out: bool,
    color_err: bool,
    /// True if the terminal knows no escapes (`TERM=dumb`).
    is_dumb: bool,
    /// The results so far, where they are not written anywhere.
    kept: Option<Mutex<Vec<String>>>,
}

impl Ui {
    /// Looks at the options, the terminal and `NO_COLOR`.
    pub fn new(args: OutputArgs) -> Ui {
        let is_dumb = is_dumb();
        let allowed = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && !is_dumb;
        let color = |terminal: bool| match args.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => allowed && terminal,
        };
        Ui {
            color_out: color(std::io::stdout().is_terminal()),
            color_err: color(std::io::stderr().is_terminal()),
            args,
            is_dumb,
            kept: None,
        }
    }

    /// Writes nothing: results are kept, all else is left out.
    pub fn capturing(args: OutputArgs) -> Ui {
        Ui { args, color_out: false, color_err: false, is_dumb: false, kept: Some(Mutex::default()) }
    }

    /// The results that were kept.
    pub fn captured(self) -> Vec<String> {
        self.kept.map_or_else(Vec::new, |k| k.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if results are JSON.
    pub fn is_json(&self) -> bool {
        self.args.format == Format::Json
    }

    /// Returns true if a progress display makes sense.
    pub fn is_live(&self) -> bool {
        !self.args.quiet && !self.is_dumb && self.kept.is_none() && std::io::stderr().is_terminal()
    }

    /// Returns true if results go to a terminal on which they can be drawn again.
    #[cfg(feature = "mcp")]
    pub fn can_redraw(&self) -> bool {
        !self.is_dumb && std::io::stdout().is_terminal()
    }

    /// Writes a result. A reader that has gone away (`| head`) is no error.
    pub fn result(&self, text: &str) {
        if let Some(kept) = &self.kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_string());
            return;
        }
        let mut out = std::io::stdout().lock();
        if let Err(e) = writeln!(out, "{text}").and_then(|()| out.flush()) {
            // Without a reader of standard output there is nothing to report. Any other loss of a result is a
            // failure.
            if e.kind() == std::io::ErrorKind::BrokenPipe {
                std::process::exit(0);
            }
            self.say(&format!("error: cannot write to standard output: {}", reason(&e)));
            std::process::exit(Exit::Failed.status().into());
        }
    }

    /// Returns true if standard output is colored.
    pub fn colors(&self) -> bool {
        self.color_out
    }

    /// Text in a color (a number of the terminal's), for standard output.
    pub fn styled(&self, color: &str, text: &str) -> String {
        if self.color_out { format!("\x1b[{color}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Writes a remark for people, unless they asked for quiet.
    pub fn note(&self, text: &str) {
        if !self.args.quiet {
            self.say(text);
        }
    }

    /// Writes to standard error. A failure to do so can't be reported.
    pub fn say(&self, text: &str) {
        if self.kept.is_some() {
            return;
        }
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// Returns the width of the terminal of standard error in columns, or a usual width if it is unknown.
    pub fn columns(&self) -> usize {
        #[cfg(unix)]
        if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stderr())
            && size.ws_col > 0
        {
            return size.ws_col.into();
        }
        80
    }

    /// Writes over the current line of the terminal.
    pub fn status(&self, text: &str) {
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r\x1b[2K{text}").and_then(|()| err.flush());
    }

    /// Writes findings that are the result of the command: to standard output.
    pub fn findings(&self, sources: &Sources, found: &[Diagnostic]) {
        for d in found {
            if self.is_json() {
                self.result(&render::json(sources, d).to_string());
            } else {
                self.result(&format!("{}\n", render::text(sources, d, self.color_out)));
            }
        }
    }

    /// Writes findings that kept the command from its work: to standard error; as JSON to standard output.
    pub fn problems(&self, sources: &Sources, found: &[Diagnostic]) {
        if self.is_json() {
            return self.findings(sources, found);
        }
        for d in found {
            self.say(&format!("{}\n", render::text(sources, d, self.color_err)));
        }
    }

    /// Returns the changes of a file in the format of `diff -u`.
    pub fn diff(&self, path: &str, before: &str, after: &str) -> String {
        let diff = similar::TextDiff::from_lines(before, after);
        let text =
            diff.unified_diff().context_radius(2).header(path, &format!("{path} (changed)")).to_string();
        let colored = |line: &str| match line.as_bytes().first() {
            Some(b'+') => self.styled("32", line),
            Some(b'-') => self.styled("31", line),
            Some(b'@') => self.styled("36", line),
            _ => line.to_string(),
        };
        if self.is_json() { text } else { text.lines().map(colored).collect::<Vec<_>>().join("\n") }
    }

    /// Says that a file that the user named can't be read.
    pub fn cannot_read(&self, path: impl Display, e: &std::io::Error) -> Exit {
        self.usage(&format!("cannot read `{path}`: {}", reason(e)), remedy(e))
    }

    /// Says that a file that the user named can't be written.
    pub fn cannot_write(&self, path: impl Display, e: &std::io::Error) -> Exit {
        self.usage(&format!("cannot write `{path}`: {}", reason(e)), remedy(e))
    }

    /// Says that the request is wrong.
    pub fn usage(&self, message: &str, help: Option<&str>) -> Exit {
        if self.is_json() {
            let mut error = json!({"code": "usage", "message": message});
            if let (Some(help), Some(o)) = (help, error.as_object_mut()) {
                o.insert("help".into(), Value::from(help));
            }
            self.result(&json!({"error": error}).to_string());
        } else {
            let (red, bold, off) =
                if self.color_err { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
            self.say(&format!("{red}error{off}{bold}: {message}{off}"));
            if let Some(help) = help {
                self.say(&format!("  help: {help}"));
            }
        }
        Exit::Usage
    }
}
