//! Detection of the front end for a file, by its content.

use crate::{
    adk, agentspec, aiwaves, ark, autogen, cagent, chatdev, crewai, dify, flowise, generic, goose, kagent,
    known_formats, lambda_yaml, langchain, langflow, langgraph, letta, llama_index, lobechat, mcp, metagpt,
    ms_agent, ms_declarative, n8n, nemo_nat, oa, openai_agents, praisonai, promptflow, pydantic_ai, ragflow,
    semantic_kernel, smolagents, solace, swe_agent, watsonx,
};
use frontend_kit::{Compiled, File, Frontend, Project, Recognized};

/// All front ends, one line each.
pub const FRONTENDS: &[&dyn Frontend] = &[
    &lambda_yaml::LambdaYaml,         // seed 000's own YAML
    &crewai::CrewAi,                  // agents.yaml, tasks.yaml, crew files
    &kagent::Kagent,                  // Kubernetes resources of kagent.dev
    &ark::Ark,                        // Kubernetes resources of ark.mckinsey.com
    &n8n::N8n,                        // n8n workflows
    &flowise::Flowise,                // Flowise agentflows and chatflows
    &langflow::Langflow,              // Langflow flows
    &chatdev::ChatDev,                // ChatDev graphs
    &promptflow::PromptFlow,          // Prompt flow
    &ragflow::RagFlow,                // RAGFlow agents
    &agentspec::AgentSpec,            // Open Agent Spec
    &oa::OpenAgent,                   // Open Agent Spec of Prime Vector
    &autogen::AutoGen,                // AutoGen components and configurations
    &ms_declarative::MsDeclarative,   // Microsoft Agent Framework
    &dify::Dify,                      // Dify exports
    &lobechat::LobeChat,              // LobeChat's agent index
    &nemo_nat::NemoNat,               // NVIDIA NeMo Agent Toolkit
    &letta::Letta,                    // Letta agent files
    &semantic_kernel::SemanticKernel, // Semantic Kernel's declarative agents
    &praisonai::PraisonAi,            // PraisonAI's roles and workflows
    &aiwaves::Aiwaves,                // agent teams and SOPs of aiwaves
    &swe_agent::SweAgent,             // SWE-agent
    &adk::Adk,                        // Google ADK
    &watsonx::Watsonx,                // watsonx Orchestrate
    &solace::Solace,                  // Solace Agent Mesh
    &goose::Goose,                    // Goose recipes
    &cagent::Cagent,                  // Docker agent
    &metagpt::MetaGpt,                // MetaGPT's models
    &ms_agent::MsAgent,               // ModelScope-Agent
    &openai_agents::OpenAiAgents,     // OpenAI Agents SDK, Python
    &pydantic_ai::PydanticAi,         // pydantic-ai, Python
    &smolagents::Smolagents,          // smolagents, Python
    &llama_index::LlamaIndex,         // LlamaIndex, Python
    &langgraph::LangGraph,            // LangGraph and LangChain, Python
    &langgraph::Manifest,             // langgraph.json
    &langchain::LangChain,            // LangChain's saved chains and dumped runnables
    &crate::maestro::Maestro,
    &crate::claude_agent_sdk::ClaudeAgentSdk,
    &generic::MultiAgent, // lists of agents
    &generic::Generic,    // anything with instructions
    &mcp::McpServers,     // lists of MCP servers
];

/// Front ends are only asked to compile what they are at least this sure of.
const SURE: u8 = 50;

/// Decides by content what a file is. The surest front end wins, the earlier in [`FRONTENDS`] among equals.
pub fn recognize(file: &File) -> Recognized {
    let mut best: Option<(u8, &'static dyn Frontend)> = None;
    for frontend in FRONTENDS {
        let sure = frontend.detect(file);
        if sure >= SURE && best.is_none_or(|(b, _)| sure > b) {
            best = Some((sure, *frontend));
        }
    }
    match (best, known_formats::format(file)) {
        // A format's own mark outweighs a resemblance.
        (Some((sure, frontend)), Some(_)) if sure >= 90 => Recognized::Frontend(frontend),
        (_, Some(name)) => Recognized::Unsupported(name),
        (Some((_, frontend)), None) => Recognized::Frontend(frontend),
        (None, None) => Recognized::Unknown,
    }
}

/// Compiles a file of a project if a front end reads it.
pub fn compile(project: &Project, main: usize) -> Option<Compiled> {
    match recognize(project.files.get(main)?) {
        Recognized::Frontend(frontend) => Some(frontend.lower(project, main)),
        _ => None,
    }
}
