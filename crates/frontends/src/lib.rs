//! Front ends: configurations of frameworks, and their programs in Python, as core terms. One folder a
//! framework.
//!
//! Entry points: [`recognize`] says what a file is, and [`compile`] makes a
//! [`Compiled`](frontend_kit::Compiled) of it: core terms with spans into the file, facts about the
//! framework, and diagnostics.
//!
//! Invariant: pure. Files are read by the caller and handed in as text; nothing here opens one.
//! Invariant: total. Hostile input ends in a diagnostic within time and memory that its size bounds.
//! Invariant: nothing is dropped silently. A key without a counterpart in the term is a diagnostic
//! of level info; what cannot be decided is an unknown term.
//! Invariant: no rule of `lint` is known here. Front ends say what is written and what the framework
//! supplies, not whether that is good.

mod adk;
mod agent_host;
mod agentspec;
mod aiwaves;
mod ark;
mod autogen;
mod cagent;
mod chatdev;
mod claude_agent_sdk;
pub mod crewai;
mod defaults;
mod dify;
mod flowise;
mod functions;
mod generic;
mod goose;
mod kagent;
pub mod known_formats;
pub mod lambda_yaml;
mod langchain;
mod langflow;
mod langgraph;
mod letta;
mod llama_index;
mod lobechat;
mod maestro;
mod mcp;
mod metagpt;
mod model_requests;
mod ms_agent;
mod ms_declarative;
mod n8n;
mod nemo_nat;
mod oa;
mod openai_agents;
mod praisonai;
mod promptflow;
mod py;
mod pydantic_ai;
mod ragflow;
mod registry;
mod scan;
mod semantic_kernel;
mod smolagents;
mod solace;
mod swe_agent;
mod tool_module;
mod watsonx;

pub use agentspec::NO_BOUND as AGENT_SPEC_BOUND;
pub use functions::function_tools;
pub use registry::{FRONTENDS, compile, recognize};
pub use tool_module::{Declared, ToolModule, tool_module, with_imports};

#[cfg(test)]
mod tests;
