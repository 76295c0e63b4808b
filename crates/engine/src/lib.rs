//! Runs of programs on Restate, an engine that keeps what happened and begins again what was interrupted.
//!
//! Entry points: [`Worker`] is what the engine calls to have runs done. [`EngineClient`] starts runs, answers
//! their questions and looks at them. [`LocalServer`] is a server for development on this machine. The page
//! for users is `docs/engine.md`.
//!
//! A run is a workflow of the engine. Each request of its machine is a step of the workflow, in the order in
//! which the machine makes them, so an attempt that begins anew asks for the same steps. The loop around the
//! machine is that of [`runtime::run`]; this crate is its [`runtime::Engine`].
//!
//! Invariant: what reaches the engine has been through the run's redactor: requests and answers by the
//! runtime, outcomes by the session.
//! Invariant: whoever can reach the engine may begin and cancel runs, but approves nothing: an answer counts
//! if an approver has signed it.

mod attempt;
mod client;
mod endpoint;
mod error;
mod identity;
mod local_server;
mod manifest;
mod questions;
mod worker;

pub use client::{EngineClient, EngineRunInfo, EngineStepInfo, RunEnd};
pub use error::Error;
pub use identity::IdentityKeys;
pub use local_server::{LocalServer, ServerState};
pub use worker::{Worker, WorkerOptions, service_name};
