//! Outcomes of runs, for people and as JSON, and the questions that runs wait for.

use runtime::{Journal, RunInfo, RunStatus, Waiting};
use serde_json::{Value, json};

pub use entries::report::{as_diagnostic, as_json, refused_calls, shown_bits, unpriced, usage_json};

/// A question whether a tool may be called, as JSON. `decided` says whether untrusted data decided that it is
/// called; it is null if that is not known.
pub fn waiting_json(w: &Waiting) -> Value {
    json!({
        "run": w.run, "request": w.token, "tool": w.tool, "args": w.args, "decided": w.is_decided,
        "asked": w.asked, "expires": w.expires,
    })
}

/// The state of a run of a journal, in a word. A killed process leaves its run marked as running in the file.
pub fn standing(journal: &Journal, run: &RunInfo, waits: bool) -> &'static str {
    match run.status {
        RunStatus::Running | RunStatus::Stopped if waits => "waiting",
        RunStatus::Running if !journal.is_at_work(&run.id) => "interrupted",
        status => status.as_str(),
    }
}
