//! Reasons why a server can't start.

use std::fmt;
use std::net::SocketAddr;

/// Reason why a server can't start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Two pipelines have the same name.
    SameName {
        /// The name.
        name: String,
        /// Both files.
        files: [String; 2],
    },
    /// A label of a caller is not in the lattice of a program.
    Label {
        /// The caller.
        caller: String,
        /// Key of its entry.
        key: &'static str,
        /// File of the program.
        file: String,
    },
    /// Two programs declare a store that they share in different ways.
    Store(String),
    /// Settings, journal or telemetry can't be used.
    Session(session::Error),
    /// The address can't be listened on.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        cause: String,
    },
    /// The system provides no random numbers.
    Randomness(String),
}

impl Error {
    /// The remedy, if there is one.
    pub fn help(&self) -> Option<&str> {
        match self {
            Error::SameName { .. } => Some("rename one, or serve them by two servers"),
            Error::Label { .. } => Some("write words such as `untrusted`, which every lattice knows"),
            Error::Store(_) | Error::Randomness(_) => None,
            Error::Session(e) => e.help(),
            Error::Listen { .. } => Some("choose another address with `--listen`"),
        }
    }
}

impl fmt::Display for Error {
    /// The problem alone; the remedy is for the caller to show in its own style.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::SameName { name, files: [one, other] } => {
                write!(f, "two pipelines are called `{name}`: that of `{one}` and that of `{other}`")
            }
            Error::Label { caller, key, file } => write!(
                f,
                "`{key}` of the caller `{caller}` is not a label of the lattice of the policy of `{file}`"
            ),
            Error::Store(why) => f.write_str(why),
            Error::Session(e) => e.fmt(f),
            Error::Listen { address, cause } => write!(f, "cannot listen on `{address}`: {cause}"),
            Error::Randomness(cause) => write!(f, "the system provides no random numbers: {cause}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<session::Error> for Error {
    fn from(e: session::Error) -> Error {
        Error::Session(e)
    }
}

impl From<runtime::JournalError> for Error {
    fn from(e: runtime::JournalError) -> Error {
        Error::Session(session::Error::Journal(e))
    }
}
