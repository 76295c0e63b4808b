//! Reasons why a run can't be built.

use crate::load::{reason, remedy};
use runtime::{ConfigError, JournalError};
use std::fmt;
use std::path::Path;

/// A mistake in `entail.toml`, or in an option that means the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The problem.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

impl SettingsError {
    /// An error without a remedy.
    pub fn new(message: impl Into<String>) -> SettingsError {
        SettingsError { message: message.into(), help: None }
    }

    /// A file that can't be read.
    pub fn unreadable(path: &Path, e: &std::io::Error) -> SettingsError {
        let message = format!("cannot read `{}`: {}", path.display(), reason(e));
        SettingsError { message, help: remedy(e).map(String::from) }
    }

    /// A file that can't be written.
    pub fn unwritable(path: &Path, e: &std::io::Error) -> SettingsError {
        let message = format!("cannot write `{}`: {}", path.display(), reason(e));
        SettingsError { message, help: remedy(e).map(String::from) }
    }

    /// Adds the remedy.
    #[must_use]
    pub fn with_help(self, help: Option<String>) -> SettingsError {
        SettingsError { help, ..self }
    }
}

impl From<String> for SettingsError {
    fn from(message: String) -> SettingsError {
        SettingsError::new(message)
    }
}

impl From<ConfigError> for SettingsError {
    fn from(e: ConfigError) -> SettingsError {
        SettingsError { message: e.message, help: e.help }
    }
}

impl fmt::Display for SettingsError {
    /// The problem alone; the remedy is for the caller to show in its own style.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SettingsError {}

/// The part of a run that can't be built, with the reason. In every case the request is wrong, not the
/// program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Settings or options.
    Settings(SettingsError),
    /// A model that the program can ask.
    Model(ConfigError),
    /// The journal or recording.
    Journal(JournalError),
    /// The endpoint that traces and metrics are sent to.
    Telemetry(ConfigError),
}

impl Error {
    /// The problem.
    pub fn message(&self) -> &str {
        match self {
            Error::Settings(e) => &e.message,
            Error::Model(e) | Error::Telemetry(e) => &e.message,
            Error::Journal(e) => &e.message,
        }
    }

    /// The remedy, if there is one.
    pub fn help(&self) -> Option<&str> {
        match self {
            Error::Settings(e) => e.help.as_deref(),
            Error::Model(e) | Error::Telemetry(e) => e.help.as_deref(),
            Error::Journal(e) => e.help.as_deref(),
        }
    }
}

impl From<SettingsError> for Error {
    fn from(e: SettingsError) -> Error {
        Error::Settings(e)
    }
}

impl From<JournalError> for Error {
    fn from(e: JournalError) -> Error {
        Error::Journal(e)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}
