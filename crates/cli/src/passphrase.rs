//! Passphrases of the keys with which a person signs answers.
//!
//! Entry points: [`create`] and [`unlock`].
//!
//! Invariant: a passphrase is typed at the terminal, or comes from standard input where an option says so. It
//! is never in the environment or in an argument.

use runtime::{Approvers, SealedKey, SigningKey};
use session::keyring::{self, KeyringError, NewKey};
use session::load::reason;
use std::io::{Read, Write};
use std::path::PathBuf;

/// Makes a key of this name. Returns it with its file.
pub fn create(name: &str, from_stdin: bool) -> Result<(SealedKey, PathBuf), KeyringError> {
    let key = NewKey::of(name)?;
    let passphrase = ask(&format!("new passphrase for the key of {name}: "), from_stdin)?;
    key.accepts(&passphrase)?;
    if !from_stdin && ask("the same passphrase again: ", false)? != passphrase {
        return Err(KeyringError::new("the passphrases differ", "try again"));
    }
    key.seal(&passphrase)
}

/// Opens the key of an approver: the one of this name, or the only one that the settings know.
pub fn unlock(
    approvers: &Approvers,
    wanted: Option<&str>,
    from_stdin: bool,
) -> Result<SigningKey, KeyringError> {
    let key = keyring::find(approvers, wanted)?;
    let passphrase = ask(&format!("passphrase for the key of {}: ", key.name), from_stdin)?;
    key.open(&passphrase)
}

fn ask(prompt: &str, from_stdin: bool) -> Result<String, KeyringError> {
    if !from_stdin {
        return typed(prompt);
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(4096).read_to_string(&mut text);
    read.map_err(|e| KeyringError { message: format!("no passphrase: {}", reason(&e)), help: None })?;
    Ok(text.lines().next().unwrap_or_default().to_string())
}

/// A line that is typed at the terminal of the process and not shown.
#[cfg(unix)]
fn typed(prompt: &str) -> Result<String, KeyringError> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let help = "answer at a terminal, or pass the passphrase on standard input with `--passphrase-stdin`";
    let none = || KeyringError::new("no terminal to type the passphrase at", help);
    let terminal = std::fs::File::options().read(true).write(true).open("/dev/tty").map_err(|_| none())?;
    let before = tcgetattr(&terminal).map_err(|_| none())?;
    let mut quiet = before.clone();
    // Signals are characters as well, so that the terminal is as it was after Ctrl-C.
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    tcsetattr(&terminal, OptionalActions::Flush, &quiet).map_err(|_| none())?;
    let line = read_hidden(&terminal, prompt);
    let restored = tcsetattr(&terminal, OptionalActions::Now, &before);
    let _ = (&terminal).write_all(b"\r\n");
    match (line, restored) {
        (Ok(Some(line)), Ok(())) => Ok(line),
        (Ok(None), Ok(())) => Err(KeyringError { message: "no passphrase was typed".into(), help: None }),
        _ => Err(none()),
    }
}

/// Reads the text typed before the end of the line. Returns `None` after Ctrl-C or Ctrl-D.
#[cfg(unix)]
fn read_hidden(mut terminal: &std::fs::File, prompt: &str) -> std::io::Result<Option<String>> {
    terminal.write_all(prompt.as_bytes())?;
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        if terminal.read(&mut byte)? == 0 {
            return Ok(None);
        }
        match byte[0] {
            b'\r' | b'\n' => return Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            3 | 4 => return Ok(None),
            8 | 127 => drop(line.pop()),
            other => line.push(other),
        }
    }
}

#[cfg(not(unix))]
fn typed(_: &str) -> Result<String, KeyringError> {
    let help = "pass the passphrase on standard input with `--passphrase-stdin`";
    Err(KeyringError::new("a passphrase can't be typed here", help))
}
