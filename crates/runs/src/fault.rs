//! Failures of models.

use std::fmt;

/// The kinds of failures of a model, as far as programs that handle them would act differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The model declined to answer.
    Refused,
    /// The provider withheld the answer.
    Filtered,
    /// The answer reached the limit of its length.
    CutOff,
    /// The answer holds nothing.
    Empty,
    /// The response violates the protocol: wrong media type, broken JSON, or a truncated stream.
    Malformed,
    /// The response exceeds the size limit.
    TooLarge,
    /// Too many calls for now.
    RateLimited,
    /// The account has used what it may use.
    Quota,
    /// The key is missing or wrong.
    Unauthorized,
    /// There is no such model or address.
    NotFound,
    /// The provider finds the request wrong.
    Rejected,
    /// The conversation is longer than the model can read.
    ContextLength,
    /// The provider is broken or overloaded.
    Server,
    /// There is no connection, or it broke.
    Connection,
    /// No answer in time.
    Slow,
    /// Anything else.
    #[default]
    Other,
}

impl FaultKind {
    const ALL: [FaultKind; 16] = [
        FaultKind::Refused,
        FaultKind::Filtered,
        FaultKind::CutOff,
        FaultKind::Empty,
        FaultKind::Malformed,
        FaultKind::TooLarge,
        FaultKind::RateLimited,
        FaultKind::Quota,
        FaultKind::Unauthorized,
        FaultKind::NotFound,
        FaultKind::Rejected,
        FaultKind::ContextLength,
        FaultKind::Server,
        FaultKind::Connection,
        FaultKind::Slow,
        FaultKind::Other,
    ];

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::Refused => "refused",
            FaultKind::Filtered => "filtered",
            FaultKind::CutOff => "cut_off",
            FaultKind::Empty => "empty",
            FaultKind::Malformed => "malformed",
            FaultKind::TooLarge => "too_large",
            FaultKind::RateLimited => "rate_limited",
            FaultKind::Quota => "quota",
            FaultKind::Unauthorized => "unauthorized",
            FaultKind::NotFound => "not_found",
            FaultKind::Rejected => "rejected",
            FaultKind::ContextLength => "context_length",
            FaultKind::Server => "server",
            FaultKind::Connection => "connection",
            FaultKind::Slow => "slow",
            FaultKind::Other => "other",
        }
    }

    /// Returns true if every repetition of the call fails in the same way. A fault that may pass with time,
    /// or differ at another attempt, is not permanent.
    pub fn is_permanent(self) -> bool {
        match self {
            FaultKind::Refused
            | FaultKind::Filtered
            | FaultKind::Quota
            | FaultKind::Unauthorized
            | FaultKind::NotFound
            | FaultKind::Rejected
            | FaultKind::ContextLength => true,
            FaultKind::CutOff
            | FaultKind::Empty
            | FaultKind::Malformed
            | FaultKind::TooLarge
            | FaultKind::RateLimited
            | FaultKind::Server
            | FaultKind::Connection
            | FaultKind::Slow
            | FaultKind::Other => false,
        }
    }

    /// The kind for a name in JSON.
    pub fn named(name: &str) -> Option<FaultKind> {
        FaultKind::ALL.into_iter().find(|k| k.as_str() == name)
    }

    /// Returns true if another model may succeed. An unwelcome answer is no failure.
    pub fn is_of_the_provider(self) -> bool {
        !matches!(self, FaultKind::Refused | FaultKind::Filtered | FaultKind::CutOff)
    }
}

/// Reason why a model did not answer, in words and without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// Kind of the failure.
    pub kind: FaultKind,
    /// The problem and what was received.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

impl ModelError {
    /// A failure of no particular kind.
    pub fn new(message: impl Into<String>) -> ModelError {
        ModelError::of(FaultKind::Other, message)
    }

    /// A failure of this kind.
    pub fn of(kind: FaultKind, message: impl Into<String>) -> ModelError {
        ModelError { kind, message: message.into(), help: None }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> ModelError {
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
