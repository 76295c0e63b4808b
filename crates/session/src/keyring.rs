//! The keys with which a person signs answers, in files of their own.
//!
//! Entry points: [`NewKey::of`] to make one, [`find`] to use one.
//!
//! Invariant: a key is in a file that only its owner can read, sealed by a passphrase that is given by the
//! driver and kept nowhere.

use crate::load::reason;
use runtime::{Approvers, KeyError, SealedKey, SigningKey, write_private};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Characters that a new passphrase has at least.
const MIN_PASSPHRASE: usize = 8;

/// Reason why there is no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyringError {
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl KeyringError {
    /// An error with its remedy.
    pub fn new(message: impl Into<String>, help: &str) -> KeyringError {
        KeyringError { message: message.into(), help: Some(help.to_string()) }
    }
}

/// The directory of the keys.
fn directory() -> Result<PathBuf, KeyringError> {
    directory_of("approvers")
}

/// The file of the tokens for an MCP server at an address.
pub(crate) fn token_file(server: &str, url: &str) -> Option<PathBuf> {
    let name: String =
        server.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
    let digest = runtime::hex(&Sha256::digest(format!("{server}\n{url}").as_bytes()));
    directory_of("mcp").ok().map(|dir| dir.join(format!("{name}-{}.json", &digest[..16])))
}

/// `entail/OF` in the user's configuration directory.
fn directory_of(of: &str) -> Result<PathBuf, KeyringError> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_CONFIG_HOME").or_else(|| match cfg!(windows) {
        true => set("APPDATA"),
        false => set("HOME").map(|home| home.join(".config")),
    });
    let none = || KeyringError::new("no configuration directory was found", "set `XDG_CONFIG_HOME` to one");
    base.map(|base| base.join("entail").join(of)).ok_or_else(none)
}

/// A key that is to be made.
#[derive(Debug)]
pub struct NewKey {
    name: String,
    file: PathBuf,
}

impl NewKey {
    /// A key of this name.
    ///
    /// # Errors
    /// The name is invalid, or the key exists already.
    pub fn of(name: &str) -> Result<NewKey, KeyringError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(is_plain) {
            let message = format!("`{}` is not a valid name for a key", diagnostics::visible(name, 60));
            return Err(KeyringError::new(
                message,
                "use letters, digits, `-` and `_`: `entail approve --new-key alice`",
            ));
        }
        let file = directory()?.join(format!("{name}.json"));
        if file.exists() {
            let message = format!("there is a key `{}` already", file.display());
            return Err(KeyringError::new(
                message,
                "use another name, or remove the file if the key is not used any more",
            ));
        }
        Ok(NewKey { name: name.to_string(), file })
    }

    /// Checks that a passphrase is long enough.
    ///
    /// # Errors
    /// It is too short.
    pub fn accepts(&self, passphrase: &str) -> Result<(), KeyringError> {
        if passphrase.chars().count() < MIN_PASSPHRASE {
            let help = "whoever reads the file of the key can try passphrases: take several words";
            return Err(KeyringError::new(
                format!("a passphrase has at least {MIN_PASSPHRASE} characters"),
                help,
            ));
        }
        Ok(())
    }

    /// Makes the key, sealed by a passphrase, and writes its file. Returns both.
    ///
    /// # Errors
    /// The passphrase is too short, or the file can't be written.
    pub fn seal(self, passphrase: &str) -> Result<(SealedKey, PathBuf), KeyringError> {
        self.accepts(passphrase)?;
        let NewKey { name, file } = self;
        let key = SealedKey::generate(&name, passphrase)
            .map_err(|e| KeyringError::new(e.to_string(), "try again"))?;
        let folder = file.parent().unwrap_or(Path::new("."));
        let written = std::fs::create_dir_all(folder).and_then(|()| write_private(&file, &key.text()));
        written.map_err(|e| {
            let message = format!("cannot write `{}`: {}", file.display(), reason(&e));
            KeyringError { message, help: None }
        })?;
        Ok((key, file))
    }
}

/// The key of an approver, sealed by a passphrase.
#[derive(Debug)]
pub struct FoundKey {
    /// Name of the approver in the settings.
    pub name: String,
    sealed: SealedKey,
}

impl FoundKey {
    /// Opens the key.
    ///
    /// # Errors
    /// The passphrase is wrong, or the key can't be used.
    pub fn open(self, passphrase: &str) -> Result<SigningKey, KeyringError> {
        let FoundKey { name, sealed } = self;
        match sealed.open(passphrase) {
            // Answers are signed under the name that the run knows.
            Ok(key) => Ok(key.named(name)),
            Err(KeyError::Passphrase) => Err(KeyringError::new("the passphrase is wrong", "try again")),
            Err(e) => {
                Err(KeyringError { message: format!("the key of `{name}` can't be used: {e}"), help: None })
            }
        }
    }
}

/// Finds the key of an approver: the one of this name, or the only one that the settings know.
///
/// # Errors
/// No key matches, or several do.
pub fn find(approvers: &Approvers, wanted: Option<&str>) -> Result<FoundKey, KeyringError> {
    let dir = directory()?;
    let mut usable: Vec<(String, SealedKey)> = Vec::new();
    for sealed in keys_in(&dir) {
        let name = sealed.public().ok().and_then(|key| approvers.name_of(&key).map(String::from));
        usable.extend(name.filter(|n| wanted.is_none_or(|w| w == n)).map(|name| (name, sealed)));
    }
    match (usable.pop(), usable.is_empty()) {
        (Some((name, sealed)), true) => Ok(FoundKey { name, sealed }),
        (Some(_), false) => {
            Err(KeyringError::new("you have the keys of several approvers", "name one with `--as`"))
        }
        (None, _) => {
            let whose = match wanted {
                Some(name) => format!("`{}`", diagnostics::visible(name, 60)),
                None => "an approver whom the settings name".to_string(),
            };
            Err(KeyringError::new(
                format!("no key of {whose} in `{}`", dir.display()),
                "make one with `entail approve --new-key NAME`, and add the lines that it shows to `entail.toml`; runs that \
                 begin after that know it",
            ))
        }
    }
}

/// The keys of a directory that can be read.
fn keys_in(dir: &Path) -> Vec<SealedKey> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| SealedKey::parse(&text).ok()).collect()
}
