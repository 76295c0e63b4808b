//! What people write, as core terms.
//!
//! Entry points: [`doc`] reads YAML and JSON with the place of every node; [`recognise`] says what a
//! file is, and [`compile`] makes a [`Compiled`] of it: core terms with spans into the file, facts
//! about the framework, and diagnostics; [`surface`] reads, checks and lowers `.agent` programs;
//! [`calculus`] reads `.lam` with the prelude in scope; [`policy`] reads policy files.
//!
//! Invariant: pure. Files are read by the caller and handed in as text; nothing here opens one.
//! Invariant: total. Hostile input ends in a diagnostic within time and memory that its size bounds.
//! Invariant: nothing is dropped silently. A key without a counterpart in the term is a diagnostic
//! of level info; what cannot be decided is an unknown term.
//! Invariant: no rule of `check` is known here. Front ends say what is written and what the framework
//! supplies, not whether that is good.

mod adk;
mod agentspec;
mod aiwaves;
mod ark;
mod asks;
mod autogen;
mod cagent;
pub mod calculus;
mod calls;
mod chatdev;
pub mod codes;
pub mod crewai;
mod defaults;
mod dify;
pub mod doc;
pub mod emit;
mod flow;
mod flowise;
mod generic;
mod goose;
mod graph;
mod kagent;
mod kit;
pub mod known;
pub mod lambda_yaml;
mod langchain;
mod langflow;
mod langgraph;
mod letta;
mod lobechat;
mod mcp;
mod metagpt;
mod ms_agent;
mod ms_declarative;
mod n8n;
mod nemo_nat;
mod oa;
mod openai_agents;
mod outline;
pub mod policy;
mod praisonai;
mod project;
mod promptflow;
mod py;
mod ragflow;
mod registry;
mod scan;
mod semantic_kernel;
mod shape;
mod solace;
pub mod surface;
mod swe_agent;
mod talk;
mod turn;
mod versions;
mod watsonx;

pub use agentspec::NO_BOUND as AGENT_SPEC_BOUND;
pub use mcp::{Server, servers};
pub use outline::{Ends, GraphOutline, Leftover, NodeOutline, NodeRole, Outline, Retried};
pub use project::{AgentPlace, Compiled, Facts, File, Frontend, Project, Unit, UnitKind, Words, modules};
pub use python::Modules;
pub use registry::{FRONTENDS, Recognised, compile, recognise};
pub use versions::Versions;

#[cfg(test)]
mod tests;
