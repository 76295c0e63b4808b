//! Mistakes in what the user configured.

use std::fmt;

/// Kind of a [`ConfigError`]: what is missing or wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConfigErrorKind {
    /// A declaration or a setting that no machine could use.
    #[default]
    Invalid,
    /// A tool without a handler, which the host supplies.
    NoHandler,
    /// A function of a compiled project, which runs only with the user's consent.
    NoConsent,
    /// A variable of the environment that is not set, by its name.
    NotSet(String),
    /// A program, or the root of a built-in tool on files, that this machine lacks.
    NotInstalled,
    /// A tool that a test calls without a mock.
    NotMocked,
}

/// A setting that can't be used: the request itself is wrong, not the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Kind of the error: what is missing or wrong.
    pub kind: ConfigErrorKind,
    /// The problem.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
    /// True if only the local model is missing, which `entail model pull` fetches.
    pub local_model_missing: bool,
}

impl ConfigError {
    pub(crate) fn new(message: impl Into<String>) -> ConfigError {
        ConfigError {
            kind: ConfigErrorKind::Invalid,
            message: message.into(),
            help: None,
            local_model_missing: false,
        }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> ConfigError {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn of_kind(mut self, kind: ConfigErrorKind) -> ConfigError {
        self.kind = kind;
        self
    }

    /// Problem and remedy in one line, for places that have only one.
    pub fn one_line(&self) -> String {
        match &self.help {
            Some(help) => format!("{} (help: {help})", self.message),
            None => self.message.clone(),
        }
    }
}

impl From<String> for ConfigError {
    fn from(message: String) -> ConfigError {
        ConfigError::new(message)
    }
}

impl From<&str> for ConfigError {
    fn from(message: &str) -> ConfigError {
        ConfigError::new(message)
    }
}

impl fmt::Display for ConfigError {
    /// The problem alone; the remedy is for the caller to show in its own style.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}
