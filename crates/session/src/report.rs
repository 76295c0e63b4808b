//! Outcomes of runs, for people and as JSON, and the questions that runs wait for.

use runtime::Waiting;
use serde_json::{Value, json};

pub use entries::report::{as_diagnostic, as_json, refused_calls, shown_bits, unpriced, usage_json};

/// A question whether a tool may be called, as JSON.
pub fn waiting_json(w: &Waiting) -> Value {
    json!({
        "run": w.run, "request": w.token, "tool": w.tool, "args": w.args, "asked": w.asked, "expires": w.expires,
    })
}
