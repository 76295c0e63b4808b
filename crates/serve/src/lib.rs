//! Pipelines as a server: over HTTP, as an agent of the A2A protocol, and as a server of the Model Context
//! Protocol.
//!
//! Entry points: [`Programs`] collects pipelines, [`Service::new`] sets up what they need, and
//! `http::HttpServer` (feature `http`) and `mcp::serve_stdio` (feature `mcp`) are ways to reach them. Drivers
//! parse options and handle signals. `guard::guard_stdio` (feature `mcp`) stands between another client and
//! server of the Model Context Protocol. `ui::UiServer` (feature `http`) is a page of this machine that shows
//! the runs of a journal.
//!
//! Invariant: a run belongs to the caller that began it, and everything that leaves it goes through that
//! caller's view.
//! Invariant: what leaves through the log is free of the contents of runs; the function that writes it is the
//! driver's.
//! Invariant: it knows neither the command line nor a terminal. Standard input and output are used by `mcp`
//! and `guard` alone.

mod error;
#[cfg(feature = "mcp")]
pub mod guard;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "a server of MCP neither resumes nor approves"))]
mod service;
#[cfg(feature = "http")]
pub mod ui;

pub use error::Error;
pub use service::{Log, LogFormat, Programs, Service, ServiceOptions};
