//! Runs as plain data: events, provenance, reports, traces, scripts of answers; and a run on a script alone.
//!
//! Entry points: [`run_script`] drives a [`machine::Machine`] on a [`Script`]; [`trace::Recorder`] makes a
//! trace of events. The crate `runtime` adds the world and gives the same events and reports.
//!
//! Invariant: no clock, file, socket or process. The time of a run on a script is an input.
//! Invariant: a run on a script that answers everything has the trace that the runtime gives it.

mod builtin;
mod chance;
mod event;
mod fault;
mod importance;
mod partial;
mod report;
mod script;
mod scripted;
mod secret;
mod stores;
pub mod trace;
mod why;

pub use builtin::{BUILTINS, Builtin, as_text, utc};
pub use chance::{SplitMix, hash, sample};
pub use event::{Answered, Asked, Event, is_labeled, key_name};
pub use fault::{FaultKind, ModelError};
pub use importance::Importance;
pub use partial::{Finished, Kind as CallKind, Partial, Resource};
pub use report::{Decider, Finish, RunReport, Tokens, Usage, Via};
pub use script::{Question, Script, ScriptError, json_result};
pub use scripted::run_script;
pub use secret::{RedactedStream, Redactor, Secret, hex, percent_encoded};
pub use stores::{StillStores, of_type};
pub use why::{Binding, Explained, Explainer, Refused, RefusedCall, Why};
