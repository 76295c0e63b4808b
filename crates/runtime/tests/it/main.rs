//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "tests report what they measured")]

mod approve;
mod clearance;
mod conformance;
mod deadlines;
mod engine;
mod faithful;
mod journal;
mod local;
mod mcp;
mod mcp_oauth;
mod mcp_requests;
mod openai;
mod otel;
mod redaction;
mod run;
mod schema;
mod stores;
mod suite_traces;
mod support;
mod tools;
mod wasm;
mod whole_arguments;
