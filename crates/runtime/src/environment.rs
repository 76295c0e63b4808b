//! Variables: those of the process, completed from a `.env` file.

use crate::{ConfigError, Secret};
use std::collections::BTreeMap;
use std::path::Path;

/// A `.env` file larger than this is refused.
const MAX_FILE: u64 = 1 << 20;

/// Variables by name. Passed around instead of read from the process, so that tests and embedding
/// programs say what there is.
///
/// `Debug` shows the names only, because any value may be a key.
#[derive(Clone, Default)]
pub struct Environment {
    vars: BTreeMap<String, String>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.vars.keys()).finish()
    }
}

impl Environment {
    /// These variables and no others.
    pub fn new<K: Into<String>, V: Into<String>>(vars: impl IntoIterator<Item = (K, V)>) -> Environment {
        Environment { vars: vars.into_iter().map(|(k, v)| (k.into(), v.into())).collect() }
    }

    /// The variables of this process (those that are valid Unicode).
    pub fn of_process() -> Environment {
        let text = |s: std::ffi::OsString| s.into_string().ok();
        Environment { vars: std::env::vars_os().filter_map(|(k, v)| Some((text(k)?, text(v)?))).collect() }
    }

    /// Adds the variables of a `.env` file that are not set already. A file that does not exist adds none.
    ///
    /// # Errors
    /// The file can't be read, is larger than 1 MiB, or has a line that is no assignment. The message names
    /// the line, never what it says.
    pub fn with_file(mut self, path: &Path) -> Result<Environment, ConfigError> {
        let shown = path.display();
        match std::fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(self),
            Err(e) => return Err(ConfigError::new(format!("cannot read `{shown}`: {e}"))),
            Ok(m) if !m.is_file() => return Err(ConfigError::new(format!("`{shown}` is not a file"))),
            Ok(m) if m.len() > MAX_FILE => {
                return Err(ConfigError::new(format!("`{shown}` is larger than 1 MiB")));
            }
            Ok(_) => {}
        }
        let bytes =
            std::fs::read(path).map_err(|e| ConfigError::new(format!("cannot read `{shown}`: {e}")))?;
        for (i, item) in dotenvy::from_read_iter(&bytes[..]).enumerate() {
            // The library's error quotes the line, which may hold a key.
            let (name, value) = item.map_err(|_| {
                ConfigError::new(format!("cannot read entry {} of `{shown}`", i + 1)).with_help(
                    "write one `NAME=value` per line, with quotes around values that contain spaces",
                )
            })?;
            self.vars.entry(name).or_insert(value);
        }
        Ok(self)
    }

    /// With a placeholder for each of these variables that is not set, to check settings where no keys are.
    #[must_use]
    pub fn assuming<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Environment {
        for name in names {
            if self.get(name).is_none() {
                self.vars.insert(name.to_string(), "placeholder".to_string());
            }
        }
        self
    }

    /// A variable, if it is set to anything but white space.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(|v| v.trim()).filter(|v| !v.is_empty())
    }

    /// A variable that holds a key.
    pub fn secret(&self, name: &str) -> Option<Secret> {
        self.get(name).map(Secret::new)
    }

    /// The variables whose names say that they hold a secret (`…_KEY`, `…TOKEN`, `…SECRET`,
    /// `…PASSWORD`): never handed to tools that are processes, and removed from all that is shown.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, Secret)> {
        self.vars
            .iter()
            .filter(|(name, value)| is_secret_name(name) && !value.trim().is_empty())
            .map(|(name, value)| (name.as_str(), Secret::new(value)))
    }
}

/// Returns true if the name of a variable says that it holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_wins_over_the_file_and_nothing_shows_a_value() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".env");
        std::fs::write(&file, "# keys\r\nA_KEY=file\nexport B_KEY='from file'\n\n").unwrap();
        let env = Environment::new([("A_KEY", "process")]).with_file(&file).unwrap();
        assert_eq!(env.get("A_KEY"), Some("process"));
        assert_eq!(env.get("B_KEY"), Some("from file"));
        assert_eq!(format!("{env:?}"), r#"{"A_KEY", "B_KEY"}"#);
        assert_eq!(env.secrets().map(|(n, _)| n).collect::<Vec<_>>(), ["A_KEY", "B_KEY"]);
        assert!(Environment::default().with_file(&dir.path().join("none")).is_ok());
    }

    #[test]
    fn a_broken_file_is_an_error_that_does_not_quote_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".env");
        std::fs::write(&file, "A=1\nOPENAI_API_KEY=sk-planted-secret 'oops\n").unwrap();
        let e = Environment::default().with_file(&file).unwrap_err();
        let shown = format!("{e} {e:?}");
        assert!(!shown.contains("planted") && e.to_string().contains("entry 2"), "{shown}");
        assert!(Environment::default().with_file(dir.path()).is_err());
    }
}
