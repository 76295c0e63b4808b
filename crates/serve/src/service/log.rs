//! Log of a server about its runs, on standard error.
//!
//! Invariant: of what models and tools are told and say nothing is in it but why they failed, and nothing in
//! it controls a terminal.

use diagnostics::visible;
use runtime::{Asked, Event};
use serde_json::{Value, json};
use session::events::{Detail, event_json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most characters of a message in a line.
const MAX_MESSAGE_CHARS: usize = 160;

/// Format of a [`Log`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Nothing is written.
    Silent,
    /// A line for people when a run ends or waits.
    People,
    /// An object for everything that happens.
    Json,
}

/// The log of a server.
pub struct Log {
    format: LogFormat,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

impl Log {
    /// A log that gives each line to this function.
    pub fn new(format: LogFormat, write: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log { format, write: Box::new(write) }
    }

    /// A log that writes nothing.
    pub fn silent() -> Log {
        Log::new(LogFormat::Silent, |_| {})
    }

    fn line(&self, text: &str, object: impl FnOnce() -> Value) {
        match self.format {
            LogFormat::Silent => {}
            LogFormat::People => {
                (self.write)(&format!(
                    "{} {}",
                    runtime::utc(super::now()),
                    visible(text, 2 * MAX_MESSAGE_CHARS)
                ));
            }
            LogFormat::Json => {
                let mut object = object();
                object["time"] = json!(since_1970());
                (self.write)(&object.to_string());
            }
        }
    }

    pub(super) fn begun(&self, run: &str, pipeline: &str) {
        if self.format == LogFormat::Json {
            self.line("", || json!({"event": "run", "run": run, "pipeline": pipeline}));
        }
    }

    pub(super) fn event(&self, run: &str, pipeline: &str, event: &Event) {
        match (self.format, event) {
            (LogFormat::Json, _) => {
                if let Some(mut object) = event_json(event, Detail::Outline) {
                    object["run"] = run.into();
                    self.line("", || object);
                }
            }
            (LogFormat::People, Event::Asked { what: Asked::Approve { name, .. }, recorded: false, .. }) => {
                self.line(&format!("{run} {pipeline} needs approval to call `{name}`"), || Value::Null);
            }
            _ => {}
        }
    }

    /// `outcome` is what the client gets.
    pub(super) fn ended(&self, run: &str, pipeline: &str, outcome: &Value) {
        let error = outcome.get("error");
        let usage = &outcome["usage"];
        let how = match error {
            None => "done".to_string(),
            Some(e) => {
                let text = |name: &str| e[name].as_str().unwrap_or_default();
                format!("{}: {}", text("code"), diagnostics::clip_to(text("message"), MAX_MESSAGE_CHARS))
            }
        };
        let spent = match usage["modelCalls"].as_u64() {
            None => String::new(),
            Some(calls) => format!(
                " ({calls} model call{}, {} tool call{}, {} ms)",
                if calls == 1 { "" } else { "s" },
                usage["toolCalls"],
                if usage["toolCalls"] == 1 { "" } else { "s" },
                outcome["ms"]
            ),
        };
        self.line(&format!("{run} {pipeline} {how}{spent}"), || {
            json!({
                "event": if error.is_some() { "error" } else { "result" }, "run": run, "pipeline": pipeline,
                "error": error.cloned().unwrap_or_default(), "usage": usage.clone(), "ms": outcome["ms"].clone(),
            })
        });
    }

    /// A request that was refused.
    pub(crate) fn refused(&self, method: &str, path: &str, status: u16) {
        self.line(&format!("{method} {} {status}", diagnostics::clip_to(path, 80)), || {
            json!({"event": "refused", "method": method, "path": diagnostics::clip_to(path, 200), "status": status})
        });
    }

    pub(crate) fn warning(&self, why: &str) {
        self.line(&format!("warning: {why}"), || json!({"event": "warning", "message": why}));
    }
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
