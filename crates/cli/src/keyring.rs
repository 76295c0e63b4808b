//! The keys with which a person signs answers, and the passphrase that opens them.
//!
//! Entry points: [`create`] and [`unlock`].
//!
//! Invariant: a passphrase is typed at the terminal, or comes from standard input where an option says so. It is never in the environment
//! or in an argument.

use crate::load::reason;
use runtime::{Approvers, KeyError, SealedKey, SigningKey};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Characters that a new passphrase has at least.
const MIN_PASSPHRASE: usize = 8;

/// Why there is no key, and what to do.
pub struct Problem {
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl Problem {
    fn new(message: impl Into<String>, help: &str) -> Problem {
        Problem { message: message.into(), help: Some(help.to_string()) }
    }
}

/// The directory of the keys: `entail/approvers` in the user's configuration directory.
fn directory() -> Result<PathBuf, Problem> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_CONFIG_HOME").or_else(|| match cfg!(windows) {
        true => set("APPDATA"),
        false => set("HOME").map(|home| home.join(".config")),
    });
    let none = || Problem::new("there is no configuration directory", "set `XDG_CONFIG_HOME` to one");
    base.map(|base| base.join("entail").join("approvers")).ok_or_else(none)
}

/// Makes a key of this name. Gives it with the file that has it.
pub fn create(name: &str, from_stdin: bool) -> Result<(SealedKey, PathBuf), Problem> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_plain) {
        let message = format!("`{}` is no name for a key", crate::approve::visible(name, 60));
        return Err(Problem::new(
            message,
            "use letters, digits, `-` and `_`: `entail approve --new-key alice`",
        ));
    }
    let dir = directory()?;
    let file = dir.join(format!("{name}.json"));
    if file.exists() {
        let message = format!("there is a key `{}` already", file.display());
        return Err(Problem::new(
            message,
            "use another name, or remove the file if the key is not used any more",
        ));
    }
    let passphrase = passphrase(&format!("new passphrase for the key of {name}: "), from_stdin)?;
    if passphrase.chars().count() < MIN_PASSPHRASE {
        let help = "whoever reads the file of the key can try passphrases: take several words";
        return Err(Problem::new(format!("a passphrase has at least {MIN_PASSPHRASE} characters"), help));
    }
    if !from_stdin && self::passphrase("the same passphrase again: ", false)? != passphrase {
        return Err(Problem::new("the passphrases differ", "try again"));
    }
    let key = SealedKey::generate(name, &passphrase).map_err(|e| Problem::new(e.to_string(), "try again"))?;
    let written = std::fs::create_dir_all(&dir).and_then(|()| write_private(&file, &key.text()));
    written.map_err(|e| {
        let message = format!("cannot write `{}`: {}", file.display(), reason(&e));
        Problem { message, help: None }
    })?;
    Ok((key, file))
}

/// Opens the key of an approver: the one of this name, or the only one that the settings know.
pub fn unlock(approvers: &Approvers, wanted: Option<&str>, from_stdin: bool) -> Result<SigningKey, Problem> {
    let dir = directory()?;
    let mut usable: Vec<(String, SealedKey)> = Vec::new();
    for sealed in keys_in(&dir) {
        let name = sealed.public().ok().and_then(|key| approvers.name_of(&key).map(String::from));
        usable.extend(name.filter(|n| wanted.is_none_or(|w| w == n)).map(|name| (name, sealed)));
    }
    let (name, sealed) = match (usable.pop(), usable.is_empty()) {
        (Some(found), true) => found,
        (Some(_), false) => {
            return Err(Problem::new("you have the keys of several approvers", "name one with `--as`"));
        }
        (None, _) => {
            let whose = match wanted {
                Some(name) => format!("`{}`", crate::approve::visible(name, 60)),
                None => "an approver whom the settings name".to_string(),
            };
            return Err(Problem::new(
                format!("there is no key of {whose} in `{}`", dir.display()),
                "make one with `entail approve --new-key NAME`, and add the lines that it shows to `entail.toml`; runs that \
                 begin after that know it",
            ));
        }
    };
    let passphrase = passphrase(&format!("passphrase for the key of {name}: "), from_stdin)?;
    match sealed.open(&passphrase) {
        // Answers are signed under the name that the run knows.
        Ok(key) => Ok(key.named(name)),
        Err(KeyError::Passphrase) => Err(Problem::new("the passphrase is wrong", "try again")),
        Err(e) => Err(Problem { message: format!("the key of `{name}` can't be used: {e}"), help: None }),
    }
}

/// The keys of a directory that can be read.
fn keys_in(dir: &Path) -> Vec<SealedKey> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| SealedKey::parse(&text).ok()).collect()
}

/// Writes a new file that only its owner can read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn passphrase(prompt: &str, from_stdin: bool) -> Result<String, Problem> {
    if !from_stdin {
        return typed(prompt);
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(4096).read_to_string(&mut text);
    read.map_err(|e| Problem { message: format!("no passphrase: {}", reason(&e)), help: None })?;
    Ok(text.lines().next().unwrap_or_default().to_string())
}

/// A line that is typed at the terminal of the process and not shown.
#[cfg(unix)]
fn typed(prompt: &str) -> Result<String, Problem> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let help = "answer at a terminal, or give the passphrase to standard input with `--passphrase-stdin`";
    let none = || Problem::new("there is no terminal to type the passphrase at", help);
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
        (Ok(None), Ok(())) => Err(Problem { message: "no passphrase was typed".into(), help: None }),
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
fn typed(_: &str) -> Result<String, Problem> {
    let help = "give the passphrase to standard input with `--passphrase-stdin`";
    Err(Problem::new("a passphrase can't be typed here", help))
}
