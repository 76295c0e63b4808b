//! Mistakes in what the user configured.

use std::fmt;

/// A setting that can't be used: the request itself is wrong, not the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The problem.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
    /// Whether all that is missing is the local model, which `entail model pull` fetches.
    pub local_model_missing: bool,
}

impl ConfigError {
    pub(crate) fn new(message: impl Into<String>) -> ConfigError {
        ConfigError { message: message.into(), help: None, local_model_missing: false }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> ConfigError {
        self.help = Some(help.into());
        self
    }

    /// Problem and remedy in one line, for places that have only one.
    pub(crate) fn one_line(&self) -> String {
        match &self.help {
            Some(help) => format!("{} (help: {help})", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for ConfigError {
    /// The problem alone; the remedy is for the caller to show in its own style.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}
