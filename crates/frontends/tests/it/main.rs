//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures and the environment")]

mod claude_agent_sdk;
mod detection;
mod explanations;
mod frontends;
mod langgraph;
mod turns;
