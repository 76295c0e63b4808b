//! The world around the machine: models, tools, stores, chance, budgets, time.
//!
//! Entry point: [`run`] drives a [`machine::Machine`] with [`Handlers`] within [`Limits`] and gives a
//! [`RunReport`]. [`ModelSettings`] says which models there are.
//!
//! ```
//! # use std::sync::Arc;
//! use core_ir::{Builder, Data, Globals, ModelParams, Term};
//! use diagnostics::{FileId, Span};
//! use machine::{Config, Machine};
//! use runtime::{CancellationToken, Handlers, Limits, Models, Scripted};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let at = Span { file: FileId(0), start: 0, end: 0 };
//! let mut b = Builder::new();
//! let prompt = b.lit("Answer in one word.", at);
//! let ask = b.add(Term::Llm(prompt, Arc::new(ModelParams::default())), at);
//! let code = b.finish(ask, &Globals::none()).unwrap();
//!
//! let model = Scripted::parse(r#"["Paris"]"#).unwrap();
//! let handlers = Handlers::new(Models::only(Arc::new(model)));
//! let machine = Machine::new(code.into(), Some(Data::str("Capital of France?")), Config::default());
//! let (limits, stop) = (Limits::default(), CancellationToken::new());
//! let report = runtime::run(machine, &handlers, &limits, &stop, &mut |_| {}).await;
//! assert_eq!(report.result.unwrap().data(), Some(Data::str("Paris")));
//! assert_eq!(report.usage.model_calls, 1);
//! # }
//! ```
//!
//! Invariant: this is the only crate (beside drivers) that has a clock, randomness, processes or sockets.
//! Invariant: it knows no term: it sees requests, never the program.
//! Invariant: when [`run`] returns, or its future is dropped, nothing that it started continues: connections
//! are closed, and processes are killed with their groups. The same holds of a request when its time limit
//! has passed.
//! Invariant: no key appears in a message, an event or a report.

mod approve;
mod budget;
mod config;
mod deadline;
mod driver;
mod elicit;
mod engine;
mod environment;
mod event;
mod histogram;
mod history;
mod immediate;
mod in_flight;
mod inline_map;
mod interpreter;
mod journal;
mod keys;
mod mcp;
mod otel;
mod partial;
#[cfg_attr(not(feature = "postgres"), path = "postgres_absent.rs")]
mod postgres;
mod process;
mod provider;
mod rng;
mod schema;
mod settings;
mod store;
#[cfg(target_os = "linux")]
mod supervisor;
mod tools;
#[cfg(unix)]
mod watchdog;
mod web;
mod write_lock;

pub use approve::{Approval, ApprovalArg, Approver, Edit};
pub use budget::Limits;
pub use config::{ConfigError, ConfigErrorKind};
pub use driver::{Handlers, end_run, run, run_end};
pub use elicit::{Elicitation, ElicitationAnswer, ElicitationKind, FieldKind, FormField};
pub use engine::{Engine, EngineEvent, EngineRun, EngineStep, StepKind};
pub use environment::Environment;
pub use event::Progress;
pub use histogram::{Histogram, TIME_BOUNDS};
pub use history::{History, MadeCall};
pub use interpreter::{INTERPRETER, Interpreter, InterpreterError};
pub use journal::{
    AFTER_RUN, AnswerRecord, Answers, ApprovalDesk, Authority, Change, Checked, Damage, DayUse, Decision,
    EngineQuestion, Forged, Forgery, Journal, JournalError, JournalPlace, KeptEntry, KeptMessages,
    KeptQuestion, KeptRun, LiveBoard, POLICY_CHANGED, POLICY_TEXT, Played, REDACTED, Retries, RunCursor,
    RunFilter, RunIdentity, RunInfo, RunStatus, Session, SharedDay, StepInfo, Unfinished, Waiting,
    journal_file,
};
pub use keys::{Approvers, KeyError, PublicKey, SealedKey, SigningKey, salt, write_private};
pub use mcp::{
    ApprovedTool, McpServer, ModelPin, ModulePin, OauthSettings, PinState, Pins, ServerOffer, ServerTool,
    ToolHashes, file_hash, stated_label, toml_problem,
};
pub use otel::{Delivered, OtlpProtocol, ParentSpan, RunBound, Telemetry, TelemetryEntry, TelemetryOptions};
pub use postgres::PostgresServer;
#[cfg(feature = "local")]
pub use provider::Local;
pub use provider::{
    Answer, AwsCredentials, Backoff, BoxFuture, ModelCall, Price, Protocol, Provider, RateLimit, Recorded,
    Remote, RemoteOptions, Scripted, Structured, VerbatimReply, Work,
};
pub use runs::{
    Answered, Asked, BUILTINS, Binding, CallKind, Decider, Event, Explained, FaultKind, Finish, Finished,
    Importance, ModelError, Partial, Redactor, Refused, RefusedCall, Resource, RunReport, Secret,
    StillStores, Tokens, Usage, Via, Why, hex, trace,
};
pub use schema::Schema;
pub use settings::{
    Chain, FileSettings, ModelEntry, ModelSettings, Models, PriceEntry, PriceList, providers,
};
pub use store::{RedisServer, StorePlace, StoreScope, Stores};
pub use tokio_util::sync::CancellationToken;
pub use tools::{CustomTool, PYTHON_SHIM, PythonSettings, ToolLimits, Tools};
pub use web::{cause as http_cause, client as http_client, url as http_url};

/// Supervises the tools of a program, which calls this first, with its arguments. If the program was started
/// as a supervisor, or to become a tool, this does that, and the result is its exit status. Otherwise the
/// tools of this process are supervised from now on, and other processes of the same user can't read its
/// memory, environment and descriptors. On systems other than Linux this does nothing.
#[doc(hidden)]
pub fn supervise(args: impl IntoIterator<Item = std::ffi::OsString>) -> Option<u8> {
    #[cfg(target_os = "linux")]
    {
        let carried_out = supervisor::carry_out(args);
        if carried_out.is_none() {
            supervisor::supervise_tools();
        }
        carried_out
    }
    #[cfg(not(target_os = "linux"))]
    {
        drop(args);
        None
    }
}

/// A name for a run that no other run has.
pub fn new_run_id() -> String {
    journal::new_id()
}

/// A time as text, such as 2026-01-31T09:30:00Z, from seconds since the beginning of 1970; times before that
/// are shown as that.
///
/// # Examples
/// ```
/// assert_eq!(runtime::utc(951_827_696), "2000-02-29T12:34:56Z");
/// ```
pub fn utc(seconds: i64) -> String {
    tools::utc_text(u64::try_from(seconds).unwrap_or(0))
}
