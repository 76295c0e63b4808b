//! Builds and drives runs: settings, programs, policies, handlers, journals, callers and their views.
//!
//! The command line, the server, the library and the Python package all stand on this crate.
//!
//! Entry points: [`Settings`] reads `entail.toml`; [`load::load`] reads a program; [`Session`] combines both
//! with the options of a driver and builds a run ([`Session::prepare`]); [`report`] shows its outcome.
//! `lint::ProjectLint` lints the files of a project. [`planning::Planning`] has plans written.
//!
//! ```no_run
//! use runtime::{CancellationToken, Limits};
//! use session::{RunOptions, RunSpec, Session, Settings, report};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let session = Session::new(Settings::nearest()?, RunOptions::default());
//! let mut sources = diagnostics::Sources::new();
//! let Ok(loaded) = session.load(&mut sources, "triage.agent") else { return Ok(()) };
//! let (policy, runnable) = (loaded.policy.as_ref(), &loaded.runnables[0]);
//! let run = session.prepare(RunSpec {
//!     code: &runnable.code,
//!     policy,
//!     input: None,
//!     request: None,
//!     name: "triage.agent main".into(),
//!     journal: None,
//!     models: session.models(&[&runnable.code])?,
//!     limits: Limits::default(),
//!     approver: None,
//!     stream: false,
//!     follows: None,
//!     plan: None,
//!     sources: Some(&sources),
//! })?;
//! let ended = run.run(&CancellationToken::new(), &mut |event| drop(event)).await;
//! if let Some(shown) = ended.ran.shown() {
//!     println!("{}", report::as_json(&sources, &shown, &session.bound(&runnable.code, false)));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: it writes nothing to standard output and standard error, reads no arguments and prompts nobody.
//! Standard input is read where a file is named `-`.
//! Invariant: it knows no driver: neither commands nor HTTP.
//! Invariant: what a run is shown to anybody goes through a [`view::View`].
//! Invariant: what a driver can get wrong is a typed error: [`SettingsError`], [`load::Problem`],
//! [`preflight::Refusal`], [`Error`].

pub mod approvals;
#[cfg(feature = "frameworks")]
pub mod audit;
pub mod bound;
pub mod callers;
pub mod client_config;
pub mod client_hooks;
mod error;
pub mod events;
#[cfg(feature = "plans")]
mod feedback;
pub mod frameworks;
pub mod guard_log;
pub mod kept;
pub mod keyring;
pub mod limits;
#[cfg(feature = "frameworks")]
pub mod lint;
pub mod live;
pub mod load;
pub mod locked;
pub mod packages;
pub mod partials;
#[cfg(feature = "plans")]
pub mod planning;
pub mod policy;
pub mod preflight;
pub mod program;
pub mod project_files;
#[cfg(feature = "frameworks")]
pub mod python_file;
pub mod quarantine;
#[cfg(feature = "plans")]
mod remarks;
#[cfg(feature = "plans")]
pub mod replanning;
pub mod report;
mod run;
pub mod server_file;
pub mod server_list;
pub mod settings;
pub mod tool_schemas;
pub mod verify;
pub mod view;

pub use entries::{machine_config, refusal};
pub use error::{Error, SettingsError};
pub use run::{
    Approvals, EndedRun, EngineStart, Follows, JournalMode, JournalOptions, PreparedRun, RunEvent,
    RunOptions, RunSpec, Session, handlers,
};
pub use settings::Settings;
