//! What goes wrong with models.

use std::fmt;

/// Why a model did not answer, in words for people, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// The problem and what was received.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

impl ModelError {
    pub(crate) fn new(message: impl Into<String>) -> ModelError {
        ModelError { message: message.into(), help: None }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> ModelError {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " (help: {help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ModelError {}
