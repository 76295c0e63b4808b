//! Where there are no sockets of a user, a guard can't be asked about tools that the client has by itself.

use ::guard::OwnDecision;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};

const NONE: &str = "hooks need sockets, which this system does not have";

/// A message of a client's hook.
#[derive(Debug)]
pub(super) enum Told {
    /// It wants to make this call.
    Call { tool: String, input: Value },
    /// The user asks for this.
    Request(String),
    /// The user has begun a new conversation.
    Fresh,
    /// The user resumes a conversation of which nothing is known here.
    Resumed,
}

/// A message of a client's hook, and where the answer goes.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) told: Told,
    pub(super) answer: oneshot::Sender<OwnDecision>,
}

/// A socket on which a guard is asked.
pub(super) struct Hooks {
    pub(super) asked: mpsc::Receiver<Asked>,
}

impl Hooks {
    pub(super) fn listen(_: &Path) -> Result<Hooks, String> {
        Err(NONE.into())
    }
}

/// The folder of the sockets of a user.
///
/// # Errors
/// There is none.
pub fn hook_folder(_: &runtime::Environment) -> Result<PathBuf, String> {
    Err(NONE.into())
}

/// The answer of the guards of a client about a call of a tool that it has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    /// All of them allow it.
    Allowed,
    /// One of them wants the user to be asked, and none refuses.
    Asks,
    /// One of them refuses, for this reason.
    Refused(String),
    /// No guard of the client is there.
    Nobody,
}

/// Tells nobody.
pub fn tell_request(_: &Path, _: &str) {}

/// Tells nobody.
pub fn tell_conversation(_: &Path, _: bool) -> bool {
    false
}

/// Asks nobody.
pub fn ask(_: &Path, _: &str, _: &Value) -> HookAnswer {
    HookAnswer::Nobody
}
