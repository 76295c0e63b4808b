//! Questions whether a tool may be called, in the state of the workflow whose run asks.

use runtime::EngineQuestion;

/// Beginning of the keys of questions in the state of a workflow; the token follows.
pub(crate) const PREFIX: &str = "question:";

/// Reads a question; `None` if it is not one that a run asked.
pub(crate) fn read(text: &str) -> Option<EngineQuestion> {
    EngineQuestion::from_json(&serde_json::from_str(text).ok()?)
}
