//! Reasons why the engine can't be used.

use std::fmt;

/// Reason why the engine, or a worker of it, can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The problem.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), help: None }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Error {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<runtime::ConfigError> for Error {
    fn from(e: runtime::ConfigError) -> Error {
        Error { message: e.message, help: e.help }
    }
}
